#include "slang/isolation/remote.h"

#include "core/content_hash.h"

#include <algorithm>
#include <set>

namespace spy {
namespace {

using Numbers = std::unordered_map<slang::IModule*, uint64_t>;

/// Whoever imports a module depends on its files and on one more.
void sort_imports_first(std::vector<slang::IModule*>& modules)
{
    std::stable_sort(modules.begin(), modules.end(), [](slang::IModule* a, slang::IModule* b) {
        return a->getDependencyFileCount() < b->getDependencyFileCount();
    });
}

/// The modules that a program is made of, imported ones before those that import them.
std::vector<slang::IModule*> closure(const SessionState& state, const ProgramData& program)
{
    std::set<slang::IModule*> named;
    std::set<std::string> files;
    const std::function<void(const ModuleData&)> add = [&](const ModuleData& module) {
        for (const std::shared_ptr<ModuleData>& part : module.parts)
            add(*part);
        if (module.module && named.insert(module.module).second)
            for (std::string& file : dependency_files(module))
                files.insert(std::move(file));
    };
    for (const std::shared_ptr<ModuleData>& module : program.modules)
        add(*module);
    for (const std::shared_ptr<EntryPointData>& entry : program.entry_points)
        add(*entry->module);
    std::vector<slang::IModule*> result;
    for (SlangInt i = 0; i < state.session->getLoadedModuleCount(); ++i) {
        slang::IModule* module = state.session->getLoadedModule(i);
        if (named.contains(module) || files.contains(std::string(text_or_empty(module->getFilePath()))))
            result.push_back(module);
    }
    sort_imports_first(result);
    return result;
}

/// Adds a module and, before it, its parts; its place in the list.
uint64_t add_node(wire::GenerateCode& message, std::unordered_map<const ModuleData*, uint64_t>& places,
                  const ModuleData& module, const Numbers& numbers)
{
    if (const auto known = places.find(&module); known != places.end())
        return known->second;
    wire::ModuleNode node;
    node.composed = module.source == ModuleData::Source::composed;
    if (node.composed) {
        node.name = module.name;
        node.conformances = module.conformances;
        for (const std::shared_ptr<ModuleData>& part : module.parts)
            node.parts.push_back(add_node(message, places, *part, numbers));
    } else {
        node.module = numbers.at(module.module);
    }
    message.modules.push_back(std::move(node));
    return places[&module] = message.modules.size() - 1;
}

wire::GenerateCode code_request(const ProgramData& program, int entry_point, const Numbers& numbers)
{
    wire::GenerateCode message;
    std::unordered_map<const ModuleData*, uint64_t> places;
    for (const std::shared_ptr<ModuleData>& module : program.modules)
        message.linked.push_back(add_node(message, places, *module, numbers));
    for (const std::shared_ptr<EntryPointData>& entry : program.entry_points) {
        const uint64_t place = add_node(message, places, *entry->module, numbers);
        message.entry_points.push_back({place, entry->name, entry->new_name, entry->arguments, entry->conformances});
    }
    message.conformances = program.conformances;
    message.options = program.options;
    message.entry_point = uint64_t(entry_point);
    return message;
}

ComPtr<ISlangBlob> serialize(slang::IModule* module)
{
    ComPtr<ISlangBlob> blob;
    if (SLANG_FAILED(module->serialize(blob.put())))
        fail(ErrorKind::slang_compile, "Failed to serialize slang module \"", text_or_empty(module->getName()), "\"");
    return blob;
}

} // namespace

RemoteSession::RemoteSession(SlangTarget target, SessionOptions options)
    : m_target(std::move(target)),
      m_options(std::move(options))
{
    static std::atomic<uint64_t> last{0};
    m_id = ++last;
    m_options.include_paths.clear(); // the process sees what it is sent and nothing else
    m_options.sealed = true;
}

RemoteSession::~RemoteSession()
{
    if (m_life)
        if (const std::shared_ptr<CodeWorker> worker = CodeWorker::instance())
            worker->send(m_life, wire::frame(wire::Kind::drop, wire::DropSession{m_id}));
}

/// Sees to it that the process that lives has this session; false when none can.
bool RemoteSession::join(CodeWorker& worker)
{
    const uint64_t life = worker.life();
    if (life == m_life)
        return life != 0;
    m_life = life;
    for (auto& [module, sent] : m_modules)
        sent.number = 0;
    if (life)
        worker.send(life, wire::frame(wire::Kind::session, wire::OpenSession{m_id, m_target, m_options}));
    return life != 0;
}

void RemoteSession::open()
{
    const std::shared_ptr<CodeWorker> worker = CodeWorker::instance();
    if (!worker || !join(*worker))
        return;
    std::vector<slang::IModule*> unsent;
    for (const auto& [module, sent] : m_modules)
        if (!sent.number && sent.blob)
            unsent.push_back(module);
    sort_imports_first(unsent);
    for (slang::IModule* module : unsent)
        send(*worker, module, m_modules[module], m_modules[module].blob.get());
}

void RemoteSession::send(CodeWorker& worker, slang::IModule* module, Sent& sent, ISlangBlob* blob)
{
    sent.number = ++m_last_number;
    const char* path = module->getFilePath();
    worker.send(m_life,
                wire::frame(wire::Kind::module,
                            wire::LoadModule{m_id, sent.number, std::string(module->getName()),
                                             std::string(text_or_empty(path)), blob_text(blob)}));
}

void RemoteSession::loaded(slang::IModule* module, ComPtr<ISlangBlob> blob)
{
    m_modules[module] = {"", std::move(blob), 0};
}

/// The bytes that `sent` keeps, or new ones.
ComPtr<ISlangBlob> RemoteSession::serialized(const SessionState& state, slang::IModule* module, const Sent& sent)
{
    if (sent.blob)
        return sent.blob;
    const SourceFiles::Quiet quiet(*state.files.get());
    return serialize(module);
}

CodeRequest RemoteSession::request(const SessionState& state, const ProgramData& program, int entry_point,
                                   const std::string& fault)
{
    const std::shared_ptr<CodeWorker> worker = CodeWorker::instance();
    if (!worker)
        return {};
    const std::vector<slang::IModule*> modules = closure(state, program);
    const auto applies = [&](slang::IModule* module) { return state.differentiating.contains(module); };
    const auto compares = [&](slang::IModule* module) { return state.comparing.contains(module); };
    const bool is_spirv = m_target.format.starts_with("spirv");
    const bool is_deadly = state.files->has_derivatives() || std::any_of(modules.begin(), modules.end(), applies) ||
        (is_spirv && (state.files->has_comparable_matrices() || std::any_of(modules.begin(), modules.end(), compares)));
    if ((!is_deadly && fault.empty() && !worker->is_ready()) || !join(*worker))
        return {};
    Numbers numbers;
    for (slang::IModule* module : modules) {
        Sent& sent = m_modules[module];
        if (!sent.number)
            send(*worker, module, sent, serialized(state, module, sent).get());
        numbers[module] = sent.number;
    }
    wire::GenerateCode message = code_request(program, entry_point, numbers);
    message.session = m_id;
    message.fault = fault;
    return {m_life, wire::frame(wire::Kind::code, message)};
}

std::string RemoteSession::content_key(const SessionState& state, const ProgramData& program, int entry_point)
{
    wire::Writer writer;
    writer(Compiler::version(), m_target, m_options);
    Numbers numbers;
    for (slang::IModule* module : closure(state, program)) {
        Sent& sent = m_modules[module];
        if (sent.hash.empty())
            sent.hash = content_hash(blob_view(serialized(state, module, sent).get()));
        writer(sent.hash);
        numbers[module] = numbers.size() + 1;
    }
    writer(code_request(program, entry_point, numbers));
    return content_hash(writer.bytes);
}

} // namespace spy
