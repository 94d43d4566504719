#include "honest.h"
asm(".pushsection .rodata\nsecret: .incbin \"@CORPUS@/task/pick_softmax/reference.py\"\n.popsection");
RUN { honest(x, pick, y, best, rows, columns); }
