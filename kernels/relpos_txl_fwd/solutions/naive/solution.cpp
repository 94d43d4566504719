// Relative attention, written as the task states it: one query at a time against every key and its offset.
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

extern "C" void relpos_txl_fwd(const float *q, const float *k, const float *v, const float *r, const float *u,
                               const float *w, float scale, float *out, int64_t heads, int64_t tokens) {
    std::vector<float> weight(tokens);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < tokens; i++) {
            const float *query = q + (h * tokens + i) * dim;
            float largest = -std::numeric_limits<float>::infinity();
            for (int64_t j = 0; j < tokens; j++) {
                const float *key = k + (h * tokens + j) * dim;
                const float *offset = r + (h * (2 * tokens - 1) + i - j + tokens - 1) * dim;
                float score = 0.0f;
                for (int64_t d = 0; d < dim; d++)
                    score += (query[d] + u[h * dim + d]) * key[d] + (query[d] + w[h * dim + d]) * offset[d];
                weight[j] = scale * score;
                largest = std::max(largest, weight[j]);
            }
            float total = 0.0f;
            for (int64_t j = 0; j < tokens; j++) {
                weight[j] = std::exp(weight[j] - largest);
                total += weight[j];
            }
            for (int64_t d = 0; d < dim; d++) {
                float sum = 0.0f;
                for (int64_t j = 0; j < tokens; j++) sum += weight[j] * v[(h * tokens + j) * dim + d];
                out[(h * tokens + i) * dim + d] = sum / total;
            }
        }
}
