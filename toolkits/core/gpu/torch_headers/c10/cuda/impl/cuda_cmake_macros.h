// Made when torch is built for CUDA; a torch for the CPU lacks it.
#pragma once
#define C10_CUDA_BUILD_SHARED_LIBS
