// Linked with a shared object that has a CUDA runtime inside it.
extern "C" int plugin_run();

int main() { return plugin_run(); }
