// The basic pieces of cooperative groups: the block, tiles of a warp, and a reduction over a tile.
#pragma once

#include "core.h"

namespace cooperative_groups {

struct thread_block {
    static void sync(SIMT_AT) { __syncthreads(at); }
    static unsigned thread_rank() { return simt::rank(); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

template <unsigned SIZE>
struct thread_block_tile {
    static_assert(SIZE <= SIMT_WARP && (SIZE & (SIZE - 1)) == 0, "a tile is a power of two, and no more than a warp");
    static uint64_t mask() { return (SIZE == 64 ? ~0ull : (1ull << SIZE % 64) - 1) << (simt::lane() & ~(SIZE - 1)); }
    static unsigned thread_rank() { return simt::rank() % SIZE; }
    static constexpr unsigned size() { return SIZE; }
    static constexpr unsigned num_threads() { return SIZE; }
    static unsigned meta_group_rank() { return simt::rank() / SIZE; }
    static unsigned meta_group_size() { return (thread_block::size() + SIZE - 1) / SIZE; }
    static void sync(SIMT_AT) { __syncwarp(mask(), at); }
    template <class T>
    static T shfl(T value, int from, SIMT_AT) { return __shfl_sync(mask(), value, from, SIZE, at); }
    template <class T>
    static T shfl_up(T value, unsigned delta, SIMT_AT) { return __shfl_up_sync(mask(), value, delta, SIZE, at); }
    template <class T>
    static T shfl_down(T value, unsigned delta, SIMT_AT) { return __shfl_down_sync(mask(), value, delta, SIZE, at); }
    template <class T>
    static T shfl_xor(T value, int other, SIMT_AT) { return __shfl_xor_sync(mask(), value, other, SIZE, at); }
    static unsigned long long ballot(int predicate, SIMT_AT) {
        return simt::ballot(mask(), predicate, at) >> (simt::lane() & ~(SIZE - 1));
    }
    static bool any(int predicate, SIMT_AT) { return simt::ballot(mask(), predicate, at) != 0; }
    static bool all(int predicate, SIMT_AT) { return simt::ballot(mask(), !predicate, at) == 0; }
};
template <unsigned SIZE>
inline thread_block_tile<SIZE> tiled_partition(thread_block) { return {}; }
template <unsigned SIZE, unsigned OUTER>
inline thread_block_tile<SIZE> tiled_partition(thread_block_tile<OUTER>) { return {}; }
template <class G>
inline void sync(const G& group, SIMT_AT) { group.sync(at); }

template <class T>
struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <unsigned SIZE, class T, class F>
inline T reduce(const thread_block_tile<SIZE>& tile, T value, F join, SIMT_AT) {
    for (unsigned other = SIZE / 2; other > 0; other /= 2)
        value = join(value, tile.shfl_xor(value, static_cast<int>(other), at));
    return value;
}

}  // namespace cooperative_groups
