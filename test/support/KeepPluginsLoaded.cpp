// Linked into programs under sanitizers, which match suppressions by library when the process ends: MPI's plug-ins must
// still be loaded by then.

extern "C" int dlclose(void *) { return 0; }
