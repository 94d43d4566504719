// Only names, for a machine without the library: a source that includes torch's CUDA headers compiles for a report.
#pragma once
struct cublasLtContext;
typedef struct cublasLtContext* cublasLtHandle_t;
