#pragma once
#include <cstddef>

namespace spy {

/// Makes room in the heap of this thread for that many bytes of small objects, and has another thread ask the system
/// for the pages of it, ahead of this one: Slang fills some 200 MB as it starts, and the system takes about as long to
/// give these page by page. Only a hint; the bytes stay free for whatever this thread allocates.
void prepare_heap(size_t size);

} // namespace spy
