// The kernel that does nothing, as the stand-in driver loads it.
extern "C" __attribute__((visibility("default"))) void nothing(void**) {}
