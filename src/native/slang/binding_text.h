#pragma once
// Host functions of the loadModule API: the text of Slang's "torch-binding" target, which slangpy/pytorch/raw/host
// translates. The only target that has them; reached through Slang's older interface.
#include <string>
#include <vector>

namespace spy {

/// The program part of the text for `path`; `arguments` as for slangc (defines, include paths). `source`: the file's
/// text with lines of ours, or empty where the file is read as it is. Throws ErrorKind::slang_compile with the
/// diagnostics.
std::string torch_binding_text(const std::string& path, const std::vector<std::string>& arguments,
                               const std::string& source);

} // namespace spy
