// Instances of acceleration structures: records on the host, and the buffer that builds read.
#include "device/acceleration.h"

#include "core/error.h"
#include "device/resource.h"

#include <cstring>

namespace spy {

namespace {

void check_bits(const char* field, uint32_t value, uint32_t bits)
{
    if (value >> bits)
        fail_value("AccelerationStructureInstanceDesc '", field, "': ", value, " does not fit ", bits, " bits");
}

} // namespace

std::array<uint8_t, instance_record_size> instance_record(const AccelerationStructureInstanceDesc& desc)
{
    check_bits("instance_id", desc.instance_id, 24);
    check_bits("instance_mask", desc.instance_mask, 8);
    check_bits("instance_contribution_to_hit_group_index", desc.instance_contribution_to_hit_group_index, 24);
    check_bits("flags", uint32_t(desc.flags), 8);
    const uint32_t words[2] = {desc.instance_id | desc.instance_mask << 24,
                               desc.instance_contribution_to_hit_group_index | uint32_t(desc.flags) << 24};
    const uint64_t reference = desc.structure ? desc.structure->device_address() : 0;
    std::array<uint8_t, instance_record_size> record;
    std::memcpy(record.data(), desc.transform.data(), 48);
    std::memcpy(record.data() + 48, words, 8);
    std::memcpy(record.data() + 56, &reference, 8);
    return record;
}

AccelerationStructureInstanceList::AccelerationStructureInstanceList(ref<Device> device, uint64_t size)
    : DeviceObject(std::move(device))
{
    resize(size);
}

void AccelerationStructureInstanceList::resize(uint64_t size)
{
    if (size > 0xffffffffu / instance_record_size)
        fail_value("AccelerationStructureInstanceList: ", size, " instances are too many");
    const uint64_t known = m_structures.size();
    m_records.resize(size * instance_record_size);
    m_structures.resize(size);
    m_contributions.resize(size);
    const auto empty = instance_record({});
    for (uint64_t i = known; i < size; ++i)
        std::memcpy(m_records.data() + i * instance_record_size, empty.data(), instance_record_size);
    m_buffer.reset();
}

void AccelerationStructureInstanceList::write(uint64_t index, const AccelerationStructureInstanceDesc& desc)
{
    if (index >= size())
        fail(ErrorKind::index, "AccelerationStructureInstanceList.write: index ", index,
             " is out of range: the list has ", size(), " instances");
    if (desc.structure)
        check_same_device(frontend(), desc.structure.get(),
                          "AccelerationStructureInstanceList.write 'acceleration_structure'");
    if (desc.structure && desc.structure->desc().kind == AccelerationStructureKind::top_level)
        fail_value("AccelerationStructureInstanceList.write 'acceleration_structure': ", summary(desc.structure.get()),
                   " was created as top_level; instances are of bottom_level structures");
    const auto record = instance_record(desc);
    std::memcpy(m_records.data() + index * instance_record_size, record.data(), instance_record_size);
    m_structures[index] = desc.structure;
    m_contributions[index] = desc.instance_contribution_to_hit_group_index;
    m_buffer.reset();
}

ref<Buffer> AccelerationStructureInstanceList::buffer()
{
    if (m_buffer)
        return m_buffer;
    BufferDesc desc;
    desc.size = std::max<uint64_t>(m_records.size(), instance_record_size);
    desc.struct_size = instance_record_size;
    desc.usage = BufferUsage::shader_resource | BufferUsage::acceleration_structure_build_input |
        BufferUsage::copy_source | BufferUsage::copy_destination;
    desc.label = "instances";
    ref<Buffer> made = frontend()->create_buffer(desc);
    if (!m_records.empty())
        frontend()->write_buffer(made.get(), 0, m_records.data(), m_records.size());
    return m_buffer = std::move(made);
}

InstanceGeometry AccelerationStructureInstanceList::geometry()
{
    InstanceGeometry geometry;
    geometry.instances.buffer = buffer();
    geometry.stride = instance_record_size;
    geometry.count = uint32_t(size());
    geometry.structures = m_structures;
    for (const uint32_t contribution : m_contributions)
        geometry.max_contribution = std::max(geometry.max_contribution, contribution);
    return geometry;
}

} // namespace spy
