// Loads a shared object with a CUDA runtime inside it; has none of its own.
#include <cstdio>
#include <dlfcn.h>

int main(int, char **arguments)
{
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        printf("%s\n", dlerror());
        return 3;
    }
    int (*run)() = (int (*)())dlsym(plugin, "plugin_run");
    return run();
}
