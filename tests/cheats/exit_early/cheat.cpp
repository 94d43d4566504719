#include "honest.h"
#include <cstdlib>
RUN { _Exit(0); }
