#pragma once
// One pass over recipes with one SessionState: loading, composing, linking. Runs on the worker thread, under the lock.
#include "slang/session.h"

namespace spy {

struct Build {
    std::shared_ptr<SessionState> state;
    std::vector<std::string> warnings;

    /// What the recipes became in this pass; read before the recipe's own (which may be of an older state).
    std::unordered_map<const ModuleData*, std::pair<slang::IModule*, std::shared_ptr<Layout>>> modules;
    std::unordered_map<const EntryPointData*, std::shared_ptr<Layout>> entry_points;

    void load(const ModuleData& recipe);
    void find_entry_point(const EntryPointData& recipe);
    std::shared_ptr<Layout> link(const ProgramData& recipe);

    std::shared_ptr<Layout> layout_of(const ModuleData& recipe) const;
    std::shared_ptr<Layout> layout_of(const EntryPointData& recipe) const;
    slang::IModule* module_of(const ModuleData& recipe) const;

    /// Throws SlangCompileError when `failed`; keeps the text as a warning otherwise.
    void check(bool failed, ISlangBlob* diagnostics, const std::string& title);

private:
    void load_part(const ModuleData& recipe);
    slang::IModule* load_file(const ModuleData& recipe);
    void load_source(const ModuleData& recipe, std::string text, uint64_t before);
    void refuse_deadly(const ModuleData& recipe, slang::IModule* module, uint64_t before) const;
    void add_conformances(const std::vector<TypeConformance>& wanted, const std::vector<const ModuleData*>& modules,
                          std::vector<ComPtr<slang::IComponentType>>& parts);
    std::vector<ComPtr<slang::IComponentType>> components(const std::vector<const ModuleData*>& modules) const;
    ComPtr<slang::IComponentType> compose(const std::vector<ComPtr<slang::IComponentType>>& parts);
    std::shared_ptr<Layout> lay_out(ComPtr<slang::IComponentType> component,
                                    const std::vector<const ModuleData*>& modules);
    /// Without composed ones and duplicates.
    std::vector<const ModuleData*> collect(const std::vector<std::shared_ptr<ModuleData>>& modules) const;
};

/// Diagnostics as the user shall read them.
std::string clean_diagnostics(ISlangBlob* diagnostics);

} // namespace spy
