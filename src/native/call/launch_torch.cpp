// torch tensors as arguments and results.
#include "call/launch.h"
#include "call/launch_util.h"
#include "call/torch.h"
#include "call/access.h"
#include "core/gil.h"
#include "device/encoder.h"
#include "device/shader_object.h"
#include "python/math_bindings.h"
#include "python/value_writer.h"
#include <algorithm>
#include <cstring>
#include <numeric>

namespace spy {

namespace {

/// Keeps a Python object for as long as a command that uses its memory.
class HeldObject : public Object {
public:
    explicit HeldObject(PyObject* object) : m_object(object) { Py_INCREF(object); }
    ~HeldObject() override
    {
        if (!Py_IsInitialized())
            return; // its memory ends with the process
        GilAcquire acquire;
        Py_DECREF(m_object);
    }

private:
    PyObject* m_object;
};

} // namespace

/// Zeroes a gradient that a kernel will add to; torch does so on its current stream.
void Launch::clear_fresh(const Leaf& leaf)
{
    if (leaf.flags & value_flag::fresh && leaf.grads[1])
        leaf.grads[1]->dtype.attr("zero_")();
}

NativeHandle torch_call_stream(const RunOptions& options, const Leaf* leaf)
{
    if (options.stream.value || !leaf || leaf->device_type != 2)
        return options.stream;
    TorchTensor description{0, leaf->scalar, {}, {}, leaf->device_type, leaf->device_index};
    return {NativeHandleType::CUstream, torch_stream(leaf->object, description)};
}

void refuse_cold_capture(Device& device, const RunOptions& options, std::span<const Leaf> leaves, nb::handle owner)
{
    const Leaf* found = nullptr;
    for (const Leaf& leaf : leaves)
        if (leaf.device_type == 2)
            found = &leaf;
    NativeHandle stream = torch_call_stream(options, found);
    if (!stream.value || !device.is_capturing(stream))
        return;
    std::string name = nb::cast<std::string>(owner.attr("name"));
    bool backward = nb::cast<bool>(owner.attr("options").attr("bwds"));
    fail_runtime(nb::cast<std::string>(owner.attr("label")), ": call ", name, " once before capturing",
                 backward ? ", with its backward pass" : "", ": a kernel of this call is not built yet");
}

void Launch::refuse_in_capture(const std::string& what) const
{
    NativeHandle stream = torch_call_stream(m_options, m_torch_like);
    if (stream.value && m_plan.device->is_capturing(stream))
        fail_runtime(m_plan.label, ": ", what, ", which cannot be recorded into a CUDA graph");
}

void Launch::check_torch(const LeafPlan& plan, Leaf& leaf)
{
    const DeviceInfo& info = m_plan.device->info();
    bool on_cpu = leaf.device_type == 1, is_cuda = info.type == DeviceType::cuda;
    const char* name = plan.name.c_str();
    if (is_cuda && on_cpu && leaf.shape.empty() && m_torch_like->device_type == 2 && !plan.writes) {
        // a number beside CUDA tensors, as in torch
        refuse_in_capture(cat("argument ", name, " is a CPU tensor that is copied to the GPU (pass a Python number or ", name,
                              ".cuda())"));
        nb::object moved = nb::handle(leaf.object).attr("to")(nb::handle(m_torch_like->object).attr("device"));
        TorchTensor found;
        read_torch(moved.ptr(), found);
        leaf.address = found.address;
        leaf.device_type = found.device_type;
        leaf.device_index = found.device_index;
        m_signature.keep.push_back(std::move(moved));
        return;
    }
    if (is_cuda && on_cpu)
        fail_value(m_plan.label, ": argument ", name, " is a CPU tensor, but the module's device is CUDA; pass ", name,
                   ".cuda()");
    if (is_cuda && leaf.device_index != info.device_index)
        fail_value(m_plan.label, ": argument ", name, " is on cuda:", leaf.device_index,
                   " but the module's device is cuda:", info.device_index);
    if (!is_cuda && !on_cpu && m_plan.device->cuda_index() == leaf.device_index)
        return check_primal(plan, leaf);
    if (!is_cuda && !on_cpu && m_plan.device->cuda_index() >= 0)
        fail_value(m_plan.label, ": argument ", name, " is on cuda:", leaf.device_index, " but the module's device shares memory with cuda:",
                   m_plan.device->cuda_index());
    if (!is_cuda && !on_cpu)
        fail_value(m_plan.label, ": argument ", name, " is on cuda:", leaf.device_index, " but the module's device is ",
                   m_on_host ? "cpu" : info.api_name, "; pass ", name, ".cpu()");
    check_primal(plan, leaf);
}

void Launch::check_primal(const LeafPlan& plan, const Leaf& leaf) const
{
    if (plan.reads && leaf.flags & value_flag::no_primal)
        fail_value(m_plan.label, ": argument ", plan.name, " is a diff_pair without a primal, but its value is read");
}

/// What a call does to a tensor is `t.copy_(f(...))`, which broadcasts f but not t.
void Launch::check_covered(const LeafPlan& plan, const Leaf& leaf)
{
    std::array<bool, Shape::max_rank> covered{};
    for (uint32_t i = 0; i < plan.vector_dims; ++i)
        covered[plan.map[i]] = leaf.shape[i] == m_call[plan.map[i]];
    for (size_t i = 0; i < m_call.size(); ++i)
        if (m_call[i] > 1 && !covered[i])
            fail_value(m_plan.label, ": argument ", plan.name, " of shape ", leaf.shape.str(), " is written, but has no element "
                       "of its own for each invocation of the call, whose shape is ", m_call.str());
}

/// A torch tensor for a buffer parameter: host memory, which goes through a temporary like a NumPy array.
void Launch::torch_as_array(const LeafPlan& plan, Leaf& leaf)
{
    check_torch(plan, leaf);
    if (leaf.device_type == 2)
        fail(ErrorKind::not_implemented, m_plan.label, ": argument ", plan.name,
             " is a CUDA tensor, which buffer parameters do not take; declare a Tensor or a pointer, or pass a slangpy.Tensor");
    for (size_t i = 0; i < leaf.strides.size(); ++i)
        leaf.strides[i] *= scalar_info(leaf.scalar).size;
    leaf.kind = ValueKind::array;
}

void Launch::write_torch(size_t index, const LeafPlan& plan)
{
    Leaf& leaf = m_signature.leaves[index];
    if (!shares_torch())
        check_torch(plan, leaf);
    if (leaf.device_type == 2 && !m_stream.value)
        m_stream = torch_call_stream({}, &leaf);
    if (plan.writes && !plan.whole)
        check_covered(plan, leaf);
    bool direct = leaf.device_type == 2 || m_on_host;
    if (direct && plan.element_size && plan.element_size != scalar_info(leaf.scalar).size) {
        if (leaf.device_type == 2)
            fail(ErrorKind::not_implemented, m_plan.label, ": argument ", plan.name, " of dtype ",
                 scalar_info(leaf.scalar).slang_name, " needs a conversion; pass a slangpy.Tensor");
        direct = false;
    }
    direct &= !leaf.is_apart;
    auto grads = gradients(plan, leaf);
    if (!direct) { // memory that the device cannot read: staged
        clear_fresh(leaf);
        leaf.flags &= uint8_t(~value_flag::fresh);
        const bool shared = grads[0] && grads[1] && grads[0]->raw_address == grads[1]->raw_address;
        for (size_t i = shared ? 1 : 0; i < 2; ++i)
            if (grads[i])
                stage_gradient(index, plan, *grads[i], plan.views[i + 1], i == 1);
        if (shared) { // in place: kernels tell by the address
            uint64_t address;
            std::memcpy(&address, m_bytes.data() + plan.views[2].data, sizeof address);
            write_view(plan, plan.views[1], address, grads[0]->shape, grads[0]->shape.contiguous_strides());
        }
        for (size_t i = 0; i < leaf.strides.size(); ++i)
            leaf.strides[i] *= scalar_info(leaf.scalar).size;
        leaf.kind = ValueKind::array;
        return write_array(index, plan, leaf);
    }
    if (m_signature.reserved.append_to)
        m_keep.push_back(ref<Object>(new HeldObject(leaf.object)));
    write_view(plan, plan.views[0], leaf.address, leaf.shape, leaf.strides);
    for (size_t i = 0; i < 2; ++i)
        if (grads[i])
            write_view(plan, plan.views[i + 1], grads[i]->raw_address, grads[i]->shape, grads[i]->strides);
}

/// Without a torch argument, results go to the torch device whose tensors the module's device takes.
void Launch::find_torch_like()
{
    nb::object made = m_plan.view.attr("torch_like")();
    TorchTensor found;
    read_torch(made.ptr(), found);
    m_torch_default.object = made.ptr();
    m_torch_default.scalar = found.scalar;
    m_torch_default.device_type = found.device_type;
    m_torch_default.device_index = found.device_index;
    m_signature.keep.push_back(std::move(made));
    m_torch_like = &m_torch_default;
    if (!m_stream.value)
        m_stream = torch_call_stream({}, m_torch_like);
}

void Launch::prepare_torch_result(const ResultPlan& result, Container& container)
{
    Shape shape = m_call;
    for (int64_t size : result.element_shape)
        shape.push_back(size);
    const Leaf& like = *m_torch_like;
    TorchTensor description{0, like.scalar, {}, {}, like.device_type, like.device_index};
    container.object = new_torch(description, like.object, result.leaf.scalar, shape);
    if (like.device_type == 1 && !m_on_host)
        return; // copied from a device buffer afterwards
    read_torch(container.object.ptr(), description);
    if (shares_torch() && m_total > 0)
        description.address = share_result(container.object, description);
    write_view(result.leaf, result.leaf.views[0], description.address, m_call, m_call.contiguous_strides());
}

void Launch::bump_versions()
{
    for (size_t i = 0; i < m_plan.leaves.size(); ++i) {
        const Leaf& leaf = m_signature.leaves[i];
        if (leaf.device_type != 0 && m_plan.leaves[i].writes)
            bump_torch_version(leaf.object);
    }
}

void Launch::finish_torch_result(const ResultPlan& result, Container& container)
{
    TorchTensor target;
    read_torch(container.object.ptr(), target);
    const uint64_t count = uint64_t(target.shape.element_count()), item = scalar_info(target.scalar).size;
    const uint64_t size = uint64_t(m_call.element_count()) * result.element->size;
    if (target.scalar == ScalarType::bool_ && size == 4 * count) { // a device's bool may take four bytes
        std::vector<uint32_t> wide(count);
        if (count)
            m_plan.device->read_buffer(container.buffer, 0, wide.data(), size);
        std::transform(wide.begin(), wide.end(), reinterpret_cast<bool*>(target.address), [](uint32_t value) { return value != 0; });
        return;
    }
    if (result.element->size != result.element->stride || size != count * item)
        fail(ErrorKind::not_implemented, m_plan.label, ": a torch result of ", result.element->full_name,
             " has padding on this device; use _result=\"tensor\"");
    if (size)
        m_plan.device->read_buffer(container.buffer, 0, reinterpret_cast<void*>(target.address), size);
}

} // namespace spy
