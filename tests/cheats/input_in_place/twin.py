def run(x, pick, y, best):
    y.copy_(x[pick.long()])
    best.copy_(y.argmax(-1))
    y.sub_(y.amax(-1, keepdim=True)).exp_().div_(y.sum(-1, keepdim=True))
