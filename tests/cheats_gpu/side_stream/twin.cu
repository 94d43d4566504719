#include "lab.h"
struct Side {
    cudaStream_t stream;
    cudaEvent_t before, after;
    Side() {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&before, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&after, cudaEventDisableTiming);
    }
};
RUN {
    static Side side;
    cudaEventRecord(side.before, stream);
    cudaStreamWaitEvent(side.stream, side.before, 0);
    honest(x, y, rows, columns, side.stream);
    cudaEventRecord(side.after, side.stream);
    cudaStreamWaitEvent(stream, side.after, 0);
}
