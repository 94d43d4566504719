// CUDA C++ and HIP on one CPU core, functionally: all that a source finds before its first line.
#pragma once

#include "core.h"
#include "device_math.h"
#include "groups.h"
#include "half.h"
#include "host.h"
#if SIMT_HIP
#include "wave.h"
#endif
