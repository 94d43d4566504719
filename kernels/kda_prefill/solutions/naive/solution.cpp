// Kimi Delta Attention prefill, written as the task states it: for every token, forget, compare, write, read.
#include "task.h"

#include <cmath>
#include <cstdint>
#include <vector>

static float inverse_norm(const float *x, int64_t dim) {
    float squares = 0.0f;
    for (int64_t i = 0; i < dim; i++) squares += x[i] * x[i];
    return 1.0f / std::sqrt(squares + 1e-6f);
}

static float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

extern "C" void kda_prefill(const float *q, const float *k, const float *v, const float *g, const float *beta,
                            const float *A_log, const float *dt_bias, const int64_t *cu_seqlens,
                            const float *initial_state, float scale, float *out, float *final_state, int64_t,
                            int64_t heads, int64_t dim, int64_t sequences) {
    for (int64_t x = 0; x < sequences * heads * dim * dim; x++) final_state[x] = initial_state[x];
    std::vector<float> query(dim), key(dim), decay(dim);
    for (int64_t n = 0; n < sequences; n++)
        for (int64_t t = cu_seqlens[n]; t < cu_seqlens[n + 1]; t++)
            for (int64_t h = 0; h < heads; h++) {
                const int64_t at = (t * heads + h) * dim;
                const float query_norm = inverse_norm(q + at, dim), key_norm = inverse_norm(k + at, dim);
                for (int64_t i = 0; i < dim; i++) {
                    query[i] = q[at + i] * query_norm * scale;
                    key[i] = k[at + i] * key_norm;
                    decay[i] = std::exp(-5.0f * sigmoid(std::exp(A_log[h]) * (g[at + i] + dt_bias[h * dim + i])));
                }
                const float strength = sigmoid(beta[t * heads + h]);
                for (int64_t j = 0; j < dim; j++) {
                    float *row = final_state + ((n * heads + h) * dim + j) * dim;
                    float known = 0.0f, read = 0.0f;
                    for (int64_t i = 0; i < dim; i++) {
                        row[i] *= decay[i];
                        known += row[i] * key[i];
                    }
                    const float update = strength * (v[at + j] - known);
                    for (int64_t i = 0; i < dim; i++) {
                        row[i] += update * key[i];
                        read += row[i] * query[i];
                    }
                    out[at + j] = read;
                }
            }
}
