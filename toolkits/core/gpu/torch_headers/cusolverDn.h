// Only names, for a machine without the library: a source that includes torch's CUDA headers compiles for a report.
#pragma once
#include "cusolver_common.h"
struct cusolverDnContext;
typedef struct cusolverDnContext* cusolverDnHandle_t;
