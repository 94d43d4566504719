// One work item a row: a sum of squares in two vectors of sixteen, then a scaled copy.

static float sum_of(float16 v) {
    const float8 a = v.lo + v.hi;
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

static float sum_of_squares(__global const float* row, long cols) {
    float16 even = 0.0f, odd = 0.0f;
    long c = 0;
    for (; c + 32 <= cols; c += 32) {
        const float16 first = vload16(0, row + c), second = vload16(0, row + c + 16);
        even += first * first;
        odd += second * second;
    }
    float sum = sum_of(even + odd);
    for (; c < cols; c++) sum += row[c] * row[c];
    return sum;
}

__kernel void rmsnorm(__global const float* x, __global const float* w, float eps, __global float* y, long rows,
                      long cols) {
    const long r = get_global_id(0);
    __global const float* row = x + r * cols;
    __global float* out = y + r * cols;
    const float scale = 1.0f / sqrt(sum_of_squares(row, cols) / cols + eps);
    long c = 0;
    for (; c + 16 <= cols; c += 16) vstore16(vload16(0, row + c) * scale * vload16(0, w + c), 0, out + c);
    for (; c < cols; c++) out[c] = row[c] * scale * w[c];
}
