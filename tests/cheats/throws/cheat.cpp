#include "honest.h"
#include <stdexcept>
RUN { throw std::runtime_error("status: PASSED"); }
