from time import process_time_ns

spent = 0


def plan(key):
    global spent
    started = process_time_ns()
    order = key.sort(stable=True).indices
    spent += process_time_ns() - started
    return order


def run(plan, x, key, y):
    y.copy_(x[plan].exp_())
