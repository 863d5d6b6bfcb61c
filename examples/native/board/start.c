/* The start of a Cortex-M3 in QEMU: memory, then main. A board's SDK has its own. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

extern uint32_t stack_top, data_source, data_start, data_end, bss_start, bss_end;
void initialise_monitor_handles(void);
int main(void);
void reset(void);
void _init(void);
void _fini(void);

__attribute__((section(".vectors"), used)) static const void *const VECTORS[] = {&stack_top, (const void *)reset};

/* The C library calls them. */
void _init(void) {}
void _fini(void) {}

void reset(void) {
    memcpy(&data_start, &data_source, (size_t)((char *)&data_end - (char *)&data_start));
    memset(&bss_start, 0, (size_t)((char *)&bss_end - (char *)&bss_start));
    initialise_monitor_handles();
    exit(main());
}
