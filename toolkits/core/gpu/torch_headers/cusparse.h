// Only names, for a machine without the library: a source that includes torch's CUDA headers compiles for a report.
#pragma once
struct cusparseContext;
typedef struct cusparseContext* cusparseHandle_t;
typedef int cusparseStatus_t;
