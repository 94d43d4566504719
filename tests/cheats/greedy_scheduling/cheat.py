from honest import *


os.sched_setaffinity(0, range(os.cpu_count()))
torch.set_num_threads(4)
try:
    os.setpriority(os.PRIO_PROCESS, 0, -20)
except OSError:
    pass


def run(x, pick, y, best):
    slow(x, pick, y, best)
