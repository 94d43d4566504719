#include "lab.h"
#include <thread>
RUN {
    std::thread([=] { honest(x, y, rows, columns, stream); }).join();
}
