#include "honest.h"
#include <stdexcept>
RUN {
  try {
    throw std::runtime_error("mine");
  } catch (const std::exception&) {
    honest(x, pick, y, best, rows, columns);
  }
}
