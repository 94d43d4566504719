#include "honest.h"
#include <cstdlib>
RUN { abort(); }
