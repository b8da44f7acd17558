#pragma once
// Kernels that read or write through a null pointer.

namespace spy::cpu {

/// Asks the system for such faults. They stay with whoever had them before where no kernel caused them.
void watch_null_pointers();

/// Runs body(data), code of a kernel, and says whether it ended. Where it went through a null pointer, it is left
/// there: nothing between here and the kernel may need its destructor.
bool ends_without_null(void (*body)(void* data), void* data);

} // namespace spy::cpu
