#include "call/plan/read_plan.h"

#include <algorithm>

namespace spy {

namespace {

/// A record of slangpy/plan/specification.py; what is None has a default.
class Fields {
public:
    explicit Fields(nb::handle record) : m_record(nb::borrow(record)) { }

    nb::object operator[](const char* name) const { return m_record.attr(name); }
    bool has(const char* name) const { return !(*this)[name].is_none(); }
    Fields part(const char* name) const { return Fields((*this)[name]); }

    template <typename T>
    T get(const char* name) const
    {
        return nb::cast<T>((*this)[name]);
    }
    int32_t offset(const char* name) const { return get<int32_t>(name); }
    ScalarType scalar(const char* name) const
    {
        const auto text = get<std::string>(name);
        return text.empty() ? ScalarType::none : scalar_from_slang_name(text);
    }
    Shape shape(const char* name) const
    {
        Shape shape;
        for (nb::handle size : (*this)[name])
            shape.push_back(nb::cast<int64_t>(size));
        return shape;
    }
    ValueSlot value(const char* name) const
    {
        if (!has(name))
            return {};
        nb::tuple pair = get<nb::tuple>(name);
        return {nb::cast<int32_t>(pair[0]), ref<TypeLayout>(nb::cast<TypeLayout*>(pair[1]))};
    }
    ref<TypeLayout> layout(const char* name) const
    {
        return has(name) ? ref<TypeLayout>(get<TypeLayout*>(name)) : ref<TypeLayout>();
    }
    ElementSpec element() const
    {
        const Fields found = part("element");
        return {found.scalar("scalar"), found.get<uint32_t>("size"), found.layout("layout")};
    }
    SumSpec sums() const
    {
        const Fields found = part("sums");
        return {found.get<uint32_t>("ratio"), found.get<uint32_t>("item")};
    }

private:
    nb::object m_record;
};

ViewSlot read_view(nb::handle offsets)
{
    nb::tuple fields = nb::cast<nb::tuple>(offsets);
    if (nb::len(fields) != 5)
        fail_runtime("a view of a plan has ", nb::len(fields), " offsets, expected 5");
    return {nb::cast<int32_t>(fields[0]), nb::cast<int32_t>(fields[1]), nb::cast<int32_t>(fields[2]),
            nb::cast<int32_t>(fields[3]), nb::cast<int32_t>(fields[4])};
}

LeafKind read_view_leaf(const Fields& fields)
{
    ViewSpec view;
    size_t source = 0;
    for (nb::handle item : fields["views"]) {
        if (!item.is_none() && source < std::size(view.views))
            view.views[source] = read_view(item);
        ++source;
    }
    view.element = fields.element();
    view.vectors = fields.get<uint32_t>("vectors");
    view.packs = fields.get<uint32_t>("packs");
    view.sums = fields.sums();
    view.table = fields.offset("table");
    return view;
}

LeafKind read_reference(const Fields& fields)
{
    ReferenceSpec reference;
    reference.value = fields.value("value");
    reference.seed = fields.value("seed");
    reference.out = fields.value("out");
    reference.tangent = fields.value("tangent");
    reference.out_is_grad = fields.get<bool>("out_is_grad");
    reference.out_is_pair = fields.get<bool>("out_is_pair");
    reference.sums = fields.sums();
    return reference;
}

LeafKind read_generator(const Fields& f)
{
    return GeneratorSpec{f.offset("offset"), f.offset("stride"), f.offset("seed"),
                         f.offset("min"),    f.offset("max"),    f.scalar("scalar")};
}

LeafKind read_resource(const Fields& f)
{
    return ResourceSpec{f.offset("slot"), f.offset("read_slot"), f.offset("steps"), f.element()};
}

struct KindReader {
    const char* name;
    LeafKind (*read)(const Fields&);
};

/// By the words that the records of slangpy/plan/specification.py have.
constexpr KindReader kinds[] = {
    {"skip", [](const Fields&) -> LeafKind { return SkipSpec{}; }},
    {"value", [](const Fields& f) -> LeafKind { return ValueSpec{f.value("value")}; }},
    {"view", read_view_leaf},
    {"packed",
     [](const Fields& f) -> LeafKind {
         return PackedSpec{read_view(f["view"]), f.element(), f.get<uint32_t>("vectors")};
     }},
    {"generator", read_generator},
    {"pointer", [](const Fields& f) -> LeafKind { return PointerSpec{f.value("value"), f.offset("table")}; }},
    {"resource", read_resource},
    {"reference", read_reference},
    {"custom", [](const Fields& f) -> LeafKind { return CustomSpec{f.value("value"), f.offset("steps")}; }},
    {"table",
     [](const Fields& f) -> LeafKind {
         return TableSpec{read_view(f["view"]), f.shape("shape"), f.get<uint32_t>("bytes")};
     }},
};

LeafSpec read_leaf(const Fields& fields)
{
    LeafSpec leaf;
    leaf.name = fields.get<std::string>("name");
    for (nb::handle item : fields["map"])
        leaf.map.push_back(nb::cast<uint8_t>(item));
    leaf.inner = fields.shape("inner");
    leaf.reads = fields.get<bool>("reads");
    leaf.writes = fields.get<bool>("writes");
    leaf.classed = fields.get<bool>("classed");
    leaf.carries = fields.get<bool>("carries");
    leaf.lost = fields.get<std::string>("lost");
    leaf.whole = fields.get<bool>("whole");
    leaf.crosses = fields.get<uint32_t>("crosses");
    const Fields stored = fields.part("kind");
    const auto kind = stored.get<std::string>("word");
    const auto* reader = std::find_if(std::begin(kinds), std::end(kinds),
                                      [&](const KindReader& k) { return kind == k.name; });
    if (reader == std::end(kinds))
        fail_value("unknown leaf kind '", kind, "' of '", leaf.name, "'");
    leaf.kind = reader->read(stored);
    return leaf;
}

ResultSpec read_result(const Fields& fields)
{
    static const char* const modes[] = {"none", "value", "tensor", "numpy", "leaf", "torch", "texture", "custom"};
    ResultSpec result;
    const auto mode = fields.get<std::string>("mode");
    const auto* found = std::find(std::begin(modes), std::end(modes), mode);
    if (found == std::end(modes))
        fail_value("unknown result mode '", mode, "'");
    result.mode = ResultMode(found - std::begin(modes));
    if (fields.has("leaf"))
        result.leaf = read_leaf(fields.part("leaf"));
    if (const ViewSpec* view = result.leaf.as<ViewSpec>())
        result.scalar = view->element.scalar;
    result.element = fields.layout("element");
    result.carries = fields.get<bool>("carries");
    if (fields.has("dtype"))
        result.dtype = fields["dtype"];
    result.element_shape = fields.shape("element_shape");
    if (fields.has("tangent"))
        result.tangent = std::make_shared<ResultSpec>(read_result(fields.part("tangent")));
    return result;
}

CallOffsets read_offsets(const Fields& fields)
{
    return {fields.offset("total"),   fields.offset("block"),  fields.offset("flags"),     fields.offset("shape"),
            fields.offset("divisor"), fields.offset("period"), fields.offset("sum_table"), fields.offset("bounds")};
}

} // namespace

std::shared_ptr<CallPlan> read_plan(nb::handle native_plan)
{
    const Fields given(native_plan), fields = given.part("specification");
    auto plan = std::make_shared<CallPlan>();
    plan->label = fields.get<std::string>("label");
    plan->device = given.get<Device*>("device");
    for (nb::handle leaf : fields["leaves"])
        plan->leaves.push_back(read_leaf(Fields(leaf)));
    plan->result = read_result(fields.part("result"));
    plan->call_rank = fields.get<uint32_t>("call_rank");
    plan->argument_size = fields.get<uint32_t>("argument_size");
    plan->offsets = read_offsets(fields.part("offsets"));
    plan->traits.size_dependent = fields.get<bool>("size_dependent");
    plan->traits.shape_dependent = fields.get<bool>("shape_dependent");
    plan->traits.can_flatten = fields.get<bool>("can_flatten");
    plan->traits.can_widen = fields.get<bool>("can_widen");
    plan->traits.can_space = fields.get<bool>("can_space");
    plan->traits.can_be_aligned = fields.get<bool>("can_be_aligned");
    plan->traits.can_be_near = fields.get<bool>("can_be_near");
    plan->traits.can_privatize = fields.get<bool>("can_privatize");
    plan->traits.patch_least = fields.part("least").get<int64_t>("patches");
    plan->traits.picks_least = fields.part("least").get<int64_t>("picks");
    plan->traits.can_spread = fields.get<bool>("can_spread");
    plan->traits.keeps_memory = nb::len(fields.part("result")["keeps"]) > 0;
    plan->traits.has_loops = fields.get<bool>("has_loops");
    plan->traits.is_forward_mode = fields.get<bool>("is_forward_mode");
    plan->tile = fields.shape("tile");
    plan->view = given["view"];
    plan->state.is_unchecked = given.get<bool>("is_unchecked");
    return plan;
}

} // namespace spy
