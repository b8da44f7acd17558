#include "python/slang_options.h"

namespace spy {
namespace {

/// An option as text, from a str or an enum member.
std::string option_text(nb::handle value)
{
    return nb::hasattr(value, "name") ? nb::cast<std::string>(value.attr("name")) : nb::cast<std::string>(nb::str(value));
}

template <typename E>
E option_enum(const char* field, nb::handle value, std::initializer_list<const char*> names)
{
    const std::string text = option_text(value);
    int index = 0;
    std::string known;
    for (const char* name : names) {
        if (text == name)
            return E(index);
        known += cat(index ? ", " : "", name);
        ++index;
    }
    fail_value(field, ": unknown value \"", text, "\"; expected one of ", known);
}

SlangOptimizationLevel optimization_option(nb::handle value)
{
    return option_enum<SlangOptimizationLevel>("optimization", value, {"none", "default", "high", "maximal"});
}
SlangFloatingPointMode floating_point_option(nb::handle value)
{
    return option_enum<SlangFloatingPointMode>("floating_point_mode", value, {"default", "fast", "precise"});
}
SlangDebugInfoLevel debug_info_option(nb::handle value)
{
    return option_enum<SlangDebugInfoLevel>("debug_info", value, {"none", "minimal", "standard", "maximal"});
}

std::vector<std::string> text_list(nb::handle value)
{
    std::vector<std::string> result;
    if (nb::isinstance<nb::str>(value) || nb::hasattr(value, "__fspath__")) {
        result.push_back(nb::cast<std::string>(nb::str(value)));
        return result;
    }
    for (nb::handle item : value)
        result.push_back(nb::cast<std::string>(nb::str(item)));
    return result;
}

std::vector<std::pair<std::string, std::string>> define_list(nb::handle value)
{
    std::vector<std::pair<std::string, std::string>> result;
    nb::object items = nb::hasattr(value, "items") ? value.attr("items")() : nb::borrow(value);
    for (nb::handle item : items)
        result.emplace_back(nb::cast<std::string>(nb::str(nb::handle(item[nb::int_(0)]))),
                            nb::cast<std::string>(nb::str(nb::handle(item[nb::int_(1)]))));
    return result;
}

[[noreturn]] void unknown_field(const char* what, const std::string& name, const char* known)
{
    fail(ErrorKind::type, what, " has no field \"", name, "\"; known: ", known);
}

bool row_major_option(nb::handle value)
{
    const std::string text = option_text(value);
    if (text != "row_major" && text != "column_major")
        fail_value("matrix_layout: unknown value \"", text, "\"; expected row_major or column_major");
    return text == "row_major";
}

} // namespace

CompileTarget parse_target(nb::handle value)
{
    CompileTarget target;
    if (nb::isinstance<nb::str>(value)) {
        target.format = nb::cast<std::string>(value);
        return target;
    }
    nb::dict values;
    if (nb::isinstance<nb::dict>(value))
        values = nb::cast<nb::dict>(value);
    else // a device's compile target
        for (const char* name : {"format", "profile", "capabilities", "defines"})
            values[name] = value.attr(name);
    for (auto [key, item] : values) {
        const std::string name = nb::cast<std::string>(key);
        if (name == "format")
            target.format = nb::cast<std::string>(item);
        else if (name == "profile")
            target.profile = nb::cast<std::string>(item);
        else if (name == "capabilities")
            target.capabilities = text_list(item);
        else if (name == "defines")
            target.defines = define_list(item);
        else
            unknown_field("a compile target", name, "format, profile, capabilities, defines");
    }
    return target;
}

SessionOptions parse_options(nb::dict values)
{
    SessionOptions options;
    for (auto [key, value] : values) {
        const std::string name = nb::cast<std::string>(key);
        if (name == "include_paths")
            options.include_paths = text_list(value);
        else if (name == "library_paths")
            options.library_paths = text_list(value);
        else if (name == "defines")
            options.defines = define_list(value);
        else if (name == "optimization")
            options.optimization = optimization_option(value);
        else if (name == "floating_point_mode")
            options.floating_point_mode = floating_point_option(value);
        else if (name == "debug_info")
            options.debug_info = debug_info_option(value);
        else if (name == "matrix_layout")
            options.row_major = row_major_option(value);
        else if (name == "enable_warnings")
            options.enable_warnings = text_list(value);
        else if (name == "disable_warnings")
            options.disable_warnings = text_list(value);
        else if (name == "warnings_as_errors")
            options.warnings_as_errors = text_list(value);
        else if (name == "downstream_args")
            options.downstream_args = text_list(value);
        else if (name == "report_downstream_time")
            options.report_downstream_time = nb::cast<bool>(value);
        else if (name == "report_perf_benchmark")
            options.report_perf_benchmark = nb::cast<bool>(value);
        else if (name == "skip_spirv_validation")
            options.skip_spirv_validation = nb::cast<bool>(value);
        else if (name == "dump_intermediates")
            options.dump_intermediates = nb::cast<bool>(value);
        else if (name == "dump_intermediates_prefix")
            options.dump_intermediates_prefix = nb::cast<std::string>(value);
        else
            unknown_field("SlangCompilerOptions", name,
                          "include_paths, library_paths, defines, optimization, floating_point_mode, debug_info, "
                          "matrix_layout, enable_warnings, disable_warnings, warnings_as_errors, downstream_args, "
                          "report_downstream_time, report_perf_benchmark, skip_spirv_validation, dump_intermediates, "
                          "dump_intermediates_prefix");
    }
    return options;
}

LinkOptions parse_link_options(nb::handle source)
{
    LinkOptions options;
    if (source.is_none())
        return options;
    nb::object values = nb::hasattr(source, "to_dict") ? source.attr("to_dict")() : nb::borrow(source);
    for (auto [key, value] : nb::cast<nb::dict>(values)) {
        const std::string name = nb::cast<std::string>(key);
        if (value.is_none())
            continue;
        if (name == "optimization")
            options.optimization = optimization_option(value);
        else if (name == "floating_point_mode")
            options.floating_point_mode = floating_point_option(value);
        else if (name == "debug_info")
            options.debug_info = debug_info_option(value);
        else if (name == "downstream_args")
            options.downstream_args = text_list(value);
        else if (name == "dump_intermediates")
            options.dump_intermediates = nb::cast<bool>(value);
        else if (name == "dump_intermediates_prefix")
            options.dump_intermediates_prefix = nb::cast<std::string>(value);
        else
            unknown_field("SlangLinkOptions", name,
                          "optimization, floating_point_mode, debug_info, downstream_args, dump_intermediates, "
                          "dump_intermediates_prefix");
    }
    return options;
}

std::vector<TypeConformance> parse_conformances(nb::handle values)
{
    std::vector<TypeConformance> result;
    if (values.is_none())
        return result;
    for (nb::handle value : values) {
        TypeConformance item;
        if (nb::isinstance<nb::tuple>(value) && !nb::hasattr(value, "interface_name")) {
            nb::tuple parts = nb::cast<nb::tuple>(value);
            if (parts.size() < 2 || parts.size() > 3)
                fail_value("a type conformance is (interface name, type name) or (interface name, type name, id), got ",
                           parts.size(), " items");
            item.interface_name = nb::cast<std::string>(parts[0]);
            item.type_name = nb::cast<std::string>(parts[1]);
            item.id = parts.size() == 3 ? nb::cast<int64_t>(parts[2]) : -1;
        } else {
            item.interface_name = nb::cast<std::string>(value.attr("interface_name"));
            item.type_name = nb::cast<std::string>(value.attr("type_name"));
            item.id = nb::cast<int64_t>(value.attr("id"));
        }
        result.push_back(std::move(item));
    }
    return result;
}

} // namespace spy
