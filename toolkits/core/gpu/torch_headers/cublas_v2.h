// Only names, for a machine without the library: a source that includes torch's CUDA headers compiles for a report.
#pragma once
struct cublasContext;
typedef struct cublasContext* cublasHandle_t;
typedef int cublasStatus_t;
