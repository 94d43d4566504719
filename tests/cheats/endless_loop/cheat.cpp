#include "honest.h"
RUN { for (volatile bool go = true; go;) {} }
