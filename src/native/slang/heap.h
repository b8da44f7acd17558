#pragma once
#include <cstddef>

namespace spy {

/// Makes room in the heap of this thread for that many bytes of small objects, in few large pages of memory where the
/// system has them: Slang fills some 200 MB as it starts, and the kernel takes longer to give it these page by page
/// than Slang to fill them. Only a hint; the bytes stay free for whatever this thread allocates.
void prepare_heap(size_t size);

} // namespace spy
