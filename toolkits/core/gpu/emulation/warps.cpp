// The block's barrier and the warp's operations: who waits, and what all get when the last has come.
// Follows faults.cpp in the same unit.
#include "runtime.h"

namespace simt {

// --- the block's barrier ---------------------------------------------------------------------------------------------

template <class F>
static void in_order(F each) {
    const unsigned count = launched.threads;
    for (unsigned i = 0; i < count; i++) each(threads[launched.block % 2 ? i : count - 1 - i]);
}

static void open_gate() {
#if SIMT_CHECK
    check_barrier(gate.at);
#endif
    const int live = static_cast<int>(launched.live);
    gate_result = gate.what == Count::COUNT ? gate.count
                  : gate.what == Count::AND ? gate.count == live
                                            : gate.count > 0;
    gate.arrived = 0;
    gate.count = 0;
    launched.barriers++;
    in_order([](Thread& thread) {
        if (thread.state == State::AT_BARRIER) wake(thread);
    });
}

static void resolve_those_here(unsigned warp);

static void stop(State state, Where at) {
#if SIMT_CHECK
    check_yield();
#endif
    current->state = state;
    current->at = at;
    const unsigned warp = current->rank / SIMT_WARP;
    if (--warps[warp].running == 0) resolve_those_here(warp);
}

int barrier(Count what, int predicate, Where at) {
    if (!current) refuse("a barrier outside of a kernel", at);
    const bool first = gate.arrived++ == 0;
    stop(State::AT_BARRIER, at);
    if (first) gate.at = at, gate.what = what;
    if (!same_place(gate.at, at)) stuck("divergent __syncthreads: threads of one block wait at different barriers");
    gate.count += predicate != 0;
    if (gate.arrived == launched.live) open_gate();
    wait();
    return gate_result;
}

// --- the warp --------------------------------------------------------------------------------------------------------

static Thread& of_lane(unsigned warp, unsigned lane) { return threads[warp * SIMT_WARP + lane]; }

static uint64_t lanes_equal(unsigned warp, uint64_t among, const Thread& thread) {
    uint64_t equal = 0;
    for (uint64_t left = among; left; left &= left - 1) {
        const unsigned other = static_cast<unsigned>(__builtin_ctzll(left));
        if (!memcmp(of_lane(warp, other).value, thread.value, thread.size)) equal |= 1ull << other;
    }
    return equal;
}

static void resolve(unsigned warp, Operation what, uint64_t among) {
    uint64_t votes = 0;
    for (uint64_t left = among; left; left &= left - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctzll(left));
        Thread& thread = of_lane(warp, lane);
        if (thread.source && what == Operation::VOTE) votes |= 1ull << lane;
        if (what == Operation::MATCH) thread.answer = lanes_equal(warp, among, thread);
        if (what != Operation::SHUFFLE) continue;
        const bool there = among >> thread.source & 1;
        if (there) memcpy(thread.result, of_lane(warp, thread.source).value, 16);
        else memset(thread.result, 0xff, 16);  // the hardware gives anything
    }
    warps[warp].syncs++;
    const bool upwards = launched.block % 2;
    for (uint64_t left = among; left;) {
        const unsigned lane = upwards ? static_cast<unsigned>(__builtin_ctzll(left)) : 63u - __builtin_clzll(left);
        left &= ~(1ull << lane);
        Thread& thread = of_lane(warp, lane);
        if (what == Operation::VOTE) thread.answer = votes;
        wake(thread);
    }
}

static void resolve_complete(unsigned warp) {
    for (unsigned i = 0; i < waiting_groups[warp]; i++) {
        const Pending group = pending[warp][i];
        const uint64_t wanted = group.mask & warps[warp].live;
        if (!group.arrived || group.arrived != wanted) continue;
        pending[warp][i] = pending[warp][--waiting_groups[warp]];
        resolve(warp, group.operation, group.arrived);
        i = ~0u;
    }
}

// All lanes of a warp wait at operations that name no lanes: those that came to the first one in the text go on
// together. Hardware joins the lanes of a branch behind it, and what is behind mostly stands below.
static void resolve_those_here(unsigned warp) {
    const Thread* first = nullptr;
    for (uint64_t left = warps[warp].live; left; left &= left - 1) {
        const Thread& thread = of_lane(warp, static_cast<unsigned>(__builtin_ctzll(left)));
        if (thread.state != State::AT_WARP || thread.mask != WHO_IS_HERE) continue;
        if (!first || thread.at.line() < first->at.line()) first = &thread;
    }
    if (!first) return;
    uint64_t among = 0;
    for (uint64_t left = warps[warp].live; left; left &= left - 1) {
        const unsigned lane = static_cast<unsigned>(__builtin_ctzll(left));
        const Thread& thread = of_lane(warp, lane);
        const bool here = thread.state == State::AT_WARP && thread.mask == WHO_IS_HERE;
        if (here && thread.operation == first->operation && same_place(thread.at, first->at)) among |= 1ull << lane;
    }
    resolve(warp, first->operation, among);
}

static void arrive(unsigned warp, unsigned lane, const Thread& self) {
    unsigned i = 0;
    while (i < waiting_groups[warp] &&
           (pending[warp][i].mask != self.mask || pending[warp][i].operation != self.operation))
        i++;
    if (i == waiting_groups[warp]) pending[warp][waiting_groups[warp]++] = {self.operation, self.mask, 0};
    pending[warp][i].arrived |= 1ull << lane;
    if (pending[warp][i].arrived == (self.mask & warps[warp].live)) resolve_complete(warp);
}

uint64_t together(
    Operation what, uint64_t mask, const void* value, unsigned size, unsigned source, void* result, Where at
) {
    if (!current) refuse("a warp operation outside of a kernel", at);
    Thread& self = *current;
    const unsigned warp = self.rank / SIMT_WARP, lane = self.rank % SIMT_WARP;
    if (mask != WHO_IS_HERE && !(mask >> lane & 1)) refuse("this lane is not in the mask of its warp operation", at);
    self.operation = what;
    self.mask = mask;
    self.source = source;
    self.size = size;
    if (value) memcpy(self.value, value, size);
    stop(State::AT_WARP, at);
    if (mask != WHO_IS_HERE) arrive(warp, lane, self);
    wait();
    if (result) memcpy(result, self.result, size);
    return self.answer;
}

}  // namespace simt
