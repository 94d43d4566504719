#include "honest.h"
RUN {}
