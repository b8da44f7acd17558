#include "call/torch/saved.h"

#include "core/error.h"

namespace spy {

namespace {

std::string facts(const SavedTensor& tensor)
{
    std::string text = cat(scalar_info(tensor.scalar).slang_name, " ", tensor.shape.str(), " on ",
                           tensor.device_type == 1 ? "cpu" : "cuda");
    return tensor.device_type == 1 ? text : cat(text, ":", tensor.device_index);
}

} // namespace

SavedTensor saved_tensor(const TorchTensor& tensor)
{
    return {tensor.scalar, tensor.device_type, tensor.device_index, tensor.shape};
}

SavedTensor saved_tensor(const Leaf& leaf) { return {leaf.scalar, leaf.device_type, leaf.device_index, leaf.shape}; }

nb::object check_saved(const std::string& label, const SavedTensor& saved, PyObject* object, TorchTensor& found,
                       const char* what)
{
    try {
        read_torch(object, found);
    } catch (const Error& error) {
        throw Error(error.kind(), cat(label, ": ", what, ": ", error.what()));
    }
    const SavedTensor now = saved_tensor(found);
    if (now.scalar != saved.scalar || !(now.shape == saved.shape) || now.device_type != saved.device_type ||
        now.device_index != saved.device_index)
        fail_runtime(label, ": ", what, " is ", facts(now), ", but the forward pass had ", facts(saved),
                     "; what a hook gives back must have the dtype, shape and device of what it was given");
    if (!torch_is_negated(object))
        return nb::borrow(object);
    nb::object resolved = nb::handle(object).attr("resolve_neg")();
    read_torch(resolved.ptr(), found);
    return resolved;
}

} // namespace spy
