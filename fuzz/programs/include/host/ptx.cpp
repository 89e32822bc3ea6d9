// Inline PTX, one lane at a time: text is read once and then interpreted.
//
// Left out: whatever is not in `perform`; a kernel that reaches such an instruction has no result here.
#include "host.h"

#include <map>
#include <string>
#include <vector>

namespace host {

namespace {

struct Type {
    char kind = 0; // u, s, b, f, p
    unsigned bits = 0;
};

struct Operand {
    enum { VALUE, LOCAL, CONSTANT, SPECIAL } where = CONSTANT;
    size_t index = 0;
    uint64_t constant = 0;
    std::string special;
    bool negated = false, inverted = false;
    char part = 0; // b or h, for a part of a word
    unsigned part_number = 0;
};

struct Instruction {
    std::string name;
    std::vector<std::string> words; // behind the name
    std::vector<Type> types;
    std::vector<Operand> operands;
    int guard = -1;
    bool guard_negated = false;
    bool ftz = false, sat = false, carry_out = false;
    Rounding rounding = RN;
    bool is(const char *word) const {
        for (const std::string &one : words)
            if (one == word)
                return true;
        return false;
    }
};

Type type_of(const std::string &word) {
    Type type;
    if (word == "pred")
        return {'p', 1};
    if (word.size() >= 2 && strchr("usbf", word[0])) {
        char *end;
        unsigned long bits = strtoul(word.c_str() + 1, &end, 10);
        if (!*end && (bits == 8 || bits == 16 || bits == 32 || bits == 64))
            return {word[0], (unsigned)bits};
    }
    return type;
}

std::string trim(const std::string &text) {
    size_t start = text.find_first_not_of(" \t\n\r"), end = text.find_last_not_of(" \t\n\r");
    return start == std::string::npos ? "" : text.substr(start, end - start + 1);
}

} // namespace

struct Code {
    std::vector<Instruction> instructions;
    std::map<std::string, size_t> locals;

    Operand operand(std::string text) {
        Operand result;
        text = trim(text);
        if (!text.empty() && text[0] == '[')
            text = trim(text.substr(1, text.find(']') - 1));
        if (!text.empty() && text[0] == '!')
            result.inverted = true, text = text.substr(1);
        if (text.size() > 1 && text[0] == '-' && !isdigit(text[1]))
            result.negated = true, text = text.substr(1);
        size_t dot = text.rfind('.');
        if (dot != std::string::npos && dot + 2 < text.size() && (text[dot + 1] == 'b' || text[dot + 1] == 'h') && isdigit(text[dot + 2]))
            result.part = text[dot + 1], result.part_number = (unsigned)(text[dot + 2] - '0'), text = text.substr(0, dot);
        if (text.rfind("%%", 0) == 0) {
            result.where = Operand::SPECIAL;
            result.special = text.substr(2);
        } else if (text[0] == '%') {
            result.where = Operand::VALUE;
            result.index = strtoul(text.c_str() + 1, nullptr, 10);
        } else if (locals.count(text)) {
            result.where = Operand::LOCAL;
            result.index = locals[text];
        } else if (text.rfind("0f", 0) == 0 || text.rfind("0F", 0) == 0 || text.rfind("0d", 0) == 0 || text.rfind("0D", 0) == 0) {
            result.constant = strtoull(text.c_str() + 2, nullptr, 16);
        } else if (isdigit(text[0]) || text[0] == '-') {
            result.constant = (uint64_t)strtoll(text.c_str(), nullptr, 0);
            if (text.rfind("0x", 0) == 0)
                result.constant = strtoull(text.c_str(), nullptr, 16);
        } else if (text != "_") {
            unsupported(text.c_str());
        }
        return result;
    }

    void add(const std::string &statement) {
        std::string text = trim(statement);
        Instruction instruction;
        if (text.empty())
            return;
        if (text.rfind(".reg", 0) == 0) {
            std::string names = trim(text.substr(4));
            names = names.substr(names.find_first_of(" \t"));
            for (size_t start = 0; start < names.size();) {
                size_t comma = names.find(',', start);
                size_t number = locals.size();
                locals[trim(names.substr(start, comma - start))] = number;
                start = comma == std::string::npos ? names.size() : comma + 1;
            }
            return;
        }
        if (text[0] == '@') {
            size_t space = text.find(' ');
            std::string name = text.substr(1, space - 1);
            if (name[0] == '!')
                instruction.guard_negated = true, name = name.substr(1);
            instruction.guard = (int)locals.at(name);
            text = trim(text.substr(space));
        }
        size_t space = text.find_first_of(" \t");
        std::string opcode = text.substr(0, space), rest = space == std::string::npos ? "" : text.substr(space);
        for (size_t start = 0; start <= opcode.size();) {
            size_t dot = opcode.find('.', start);
            std::string word = opcode.substr(start, dot == std::string::npos ? dot : dot - start);
            if (start == 0) {
                instruction.name = word;
            } else {
                Type type = type_of(word);
                if (type.kind)
                    instruction.types.push_back(type);
                else
                    instruction.words.push_back(word);
            }
            start = dot == std::string::npos ? opcode.size() + 1 : dot + 1;
        }
        instruction.ftz = instruction.is("ftz");
        instruction.sat = instruction.is("sat");
        instruction.carry_out = instruction.is("cc");
        instruction.rounding = instruction.is("rz") || instruction.is("rzi") ? RZ : instruction.is("rm") || instruction.is("rmi") ? RD : instruction.is("rp") || instruction.is("rpi") ? RU : RN;
        for (size_t start = 0; start < rest.size();) {
            size_t comma = rest.find(',', start);
            std::string part = rest.substr(start, comma == std::string::npos ? comma : comma - start);
            size_t bar = part.find('|');
            if (bar != std::string::npos) {
                instruction.operands.push_back(operand(part.substr(0, bar)));
                part = part.substr(bar + 1);
            }
            if (!trim(part).empty())
                instruction.operands.push_back(operand(part));
            start = comma == std::string::npos ? rest.size() : comma + 1;
        }
        instructions.push_back(instruction);
    }
};

const Code *read(const char *text) {
    Code *code = new Code;
    std::string statement;
    for (const char *letter = text; *letter; letter++) {
        // Braces open scopes of names; names are used once in one text.
        if (*letter == ';') {
            code->add(statement);
            statement.clear();
        } else if (*letter != '{' && *letter != '}') {
            statement += *letter;
        }
    }
    code->add(statement);
    return code;
}

namespace {

uint64_t cut(uint64_t value, unsigned bits) { return bits >= 64 ? value : value & ((1ull << bits) - 1); }
int64_t extended(uint64_t value, unsigned bits) { return bits >= 64 ? (int64_t)value : (int64_t)(value << (64 - bits)) >> (64 - bits); }
// By a type's sign; 128 bits hold every value and every product.
__int128 number(uint64_t value, Type type) { return type.kind == 's' ? (__int128)extended(value, type.bits) : (__int128)cut(value, type.bits); }
__int128 least(Type type) { return type.kind == 's' ? -((__int128)1 << (type.bits - 1)) : 0; }
__int128 most(Type type) { return type.kind == 's' ? ((__int128)1 << (type.bits - 1)) - 1 : ((__int128)1 << type.bits) - 1; }
__int128 clamp(__int128 value, Type type) { return value < least(type) ? least(type) : value > most(type) ? most(type) : value; }

float single(uint64_t value) {
    float result;
    memcpy(&result, &value, 4);
    return result;
}
double wide(uint64_t value) {
    double result;
    memcpy(&result, &value, 8);
    return result;
}

template <class T> bool compares(const Instruction &instruction, T a, T b) {
    bool unordered = a != a || b != b;
    const std::string &how = instruction.words[0];
    if (how == "num")
        return !unordered;
    if (how == "nan")
        return unordered;
    std::string base = how;
    if (base.size() == 3 && base[2] == 'u') {
        if (unordered)
            return true;
        base = base.substr(0, 2);
    }
    if (base == "eq")
        return a == b;
    if (base == "ne")
        return !unordered && a != b;
    if (base == "lt" || base == "lo")
        return a < b;
    if (base == "le" || base == "ls")
        return a <= b;
    if (base == "gt" || base == "hi")
        return a > b;
    if (base == "ge" || base == "hs")
        return a >= b;
    unsupported(how.c_str());
}

bool compare(const Instruction &instruction, Type type, uint64_t a, uint64_t b) {
    if (type.kind == 'f' && type.bits == 32)
        return instruction.ftz ? compares(instruction, flush(single(a)), flush(single(b))) : compares(instruction, single(a), single(b));
    if (type.kind == 'f' && type.bits == 64)
        return compares(instruction, wide(a), wide(b));
    return compares(instruction, number(a, type), number(b, type));
}

template <class T> uint64_t floating(const Instruction &in, T a, T b, T c) {
    const std::string &name = in.name;
    if (in.ftz)
        a = flush(a), b = flush(b), c = flush(c);
    T result;
    if (name == "add")
        result = add(in.rounding, a, b);
    else if (name == "sub")
        result = sub(in.rounding, a, b);
    else if (name == "mul")
        result = mul(in.rounding, a, b);
    else if (name == "fma" || name == "mad")
        result = fused(in.rounding, a, b, c);
    else if (name == "abs")
        result = fabs(a);
    else if (name == "neg")
        result = -a;
    else if (name == "min" || name == "max")
        result = in.is("NaN") && (a != a || b != b) ? (T)NAN : name == "min" ? lesser(a, b) : greater(a, b);
    else if (name == "copysign")
        result = copysign(b, a);
    else if (in.is("approx") || in.is("full"))
        unsupported(name.c_str());
    else if (name == "div")
        result = div(in.rounding, a, b);
    else if (name == "rcp")
        result = div(in.rounding, (T)1, a);
    else if (name == "sqrt")
        result = root(in.rounding, a);
    else
        unsupported(name.c_str());
    if (in.ftz)
        result = flush(result);
    if (in.sat)
        result = saturated(result);
    return word(result);
}

uint64_t convert(const Instruction &in, uint64_t value) {
    Type to = in.types.at(0), from = in.types.at(1);
    bool is_whole = in.is("rni") || in.is("rzi") || in.is("rmi") || in.is("rpi");
    if ((to.kind == 'f' && to.bits < 32) || (from.kind == 'f' && from.bits < 32))
        unsupported("cvt of halves");
    if (from.kind == 'f' && to.kind == 'f') {
        if (from.bits == 32 && to.bits == 32) {
            float a = in.ftz ? flush(single(value)) : single(value);
            float result = is_whole ? whole(in.rounding, a) : a;
            return word(in.sat ? saturated(result) : result);
        }
        if (from.bits == 64 && to.bits == 64) {
            double result = is_whole ? whole(in.rounding, wide(value)) : wide(value);
            return word(in.sat ? saturated(result) : result);
        }
        if (to.bits == 64)
            return word((double)(in.ftz ? flush(single(value)) : single(value)));
        float result = narrow(in.rounding, wide(value));
        result = in.ftz ? flush(result) : result;
        return word(in.sat ? saturated(result) : result);
    }
    if (from.kind == 'f') {
        // Of 8 and 16 bits: by way of 32, then clamped.
        if (from.bits == 32) {
            float a = in.ftz ? flush(single(value)) : single(value);
            uint64_t result = integer(in.rounding, a, to.bits, to.kind == 's');
            return to.kind == 's' ? (uint64_t)extended(result, to.bits) : result;
        }
        double a = wide(value);
        uint64_t result = integer(in.rounding, a, to.bits, to.kind == 's');
        return to.kind == 's' ? (uint64_t)extended(result, to.bits) : result;
    }
    __int128 whole_number = number(value, from);
    if (to.kind == 'f' && to.bits == 32) {
        float result = from.kind == 's' ? to_float(in.rounding, (int64_t)whole_number) : to_float(in.rounding, (uint64_t)whole_number);
        return word(in.sat ? saturated(result) : result);
    }
    if (to.kind == 'f')
        return word(from.kind == 's' ? to_double(in.rounding, (int64_t)whole_number) : to_double(in.rounding, (uint64_t)whole_number));
    if (in.sat)
        whole_number = clamp(whole_number, to);
    return to.kind == 's' ? (uint64_t)extended((uint64_t)whole_number, to.bits) : cut((uint64_t)whole_number, to.bits);
}

uint64_t permute(const Instruction &in, unsigned a, unsigned b, unsigned c) {
    uint64_t both = (uint64_t)b << 32 | a;
    unsigned selectors[4], i = c & 3;
    for (unsigned byte = 0; byte < 4; byte++) {
        if (in.is("f4e"))
            selectors[byte] = i + byte;
        else if (in.is("b4e"))
            selectors[byte] = (i - byte) & 7;
        else if (in.is("rc8"))
            selectors[byte] = i;
        else if (in.is("ecl"))
            selectors[byte] = byte > i ? byte : i;
        else if (in.is("ecr"))
            selectors[byte] = byte < i ? byte : i;
        else if (in.is("rc16"))
            selectors[byte] = (i & 1) * 2 + (byte & 1);
        else
            selectors[byte] = c >> 4 * byte & 15;
    }
    unsigned result = 0;
    for (unsigned byte = 0; byte < 4; byte++) {
        unsigned one = both >> 8 * (selectors[byte] & 7) & 0xff;
        if (selectors[byte] & 8)
            one = one & 0x80 ? 0xff : 0;
        result |= one << 8 * byte;
    }
    return result;
}

__int128 part_of(const Operand &operand, uint64_t value, Type type) {
    unsigned bits = operand.part == 'b' ? 8 : operand.part == 'h' ? 16 : 32;
    return number(operand.part ? value >> bits * operand.part_number : value, {type.kind, bits});
}

uint64_t video(const Instruction &in, const std::vector<uint64_t> &v) {
    Type d = in.name == "vset" ? Type{'u', 32} : in.types.at(0);
    Type at = in.name == "vset" ? in.types.at(0) : in.types.at(1), bt = in.name == "vset" ? in.types.at(1) : in.types.at(2);
    __int128 a = part_of(in.operands[1], v[1], at), b = part_of(in.operands[2], v[2], bt), t;
    __int128 c = number(v[3], {in.name == "vset" || d.kind == 'u' ? 'u' : 's', 32});
    if (in.name == "vadd")
        t = a + b;
    else if (in.name == "vsub")
        t = a - b;
    else if (in.name == "vabsdiff")
        t = a > b ? a - b : b - a;
    else if (in.name == "vmin")
        t = a < b ? a : b;
    else if (in.name == "vmax")
        t = a > b ? a : b;
    else if (in.name == "vshl" || in.name == "vshr") {
        unsigned by = (unsigned)b;
        by = in.is("wrap") ? by & 31 : by > 32 ? 32 : by;
        t = in.name == "vshl" ? a << by : a >> by;
    } else if (in.name == "vset")
        t = compares(in, a, b);
    else if (in.name == "vmad")
        return cut((uint64_t)(in.sat ? clamp(a * b + c + in.is("po"), d) : a * b + c + in.is("po")), 32);
    else
        unsupported(in.name.c_str());
    if (in.sat)
        t = clamp(t, d);
    t = number((uint64_t)t, d);
    bool is_add = in.is("add"), is_min = in.is("min"), is_max = in.is("max");
    return cut((uint64_t)(is_add ? t + c : is_min ? (t < c ? t : c) : is_max ? (t > c ? t : c) : t), 32);
}

// A position or length of a field of bits: of 32 bits it is a byte, as the PTX manual says; of 64 bits compilers take
// all of the word.
unsigned field(uint64_t value, Type type) {
    unsigned word = (unsigned)value;
    return type.bits == 32 ? word & 0xff : word > 255 ? 255 : word;
}

uint64_t integral(const Instruction &in, const std::vector<uint64_t> &v, unsigned &carry) {
    const std::string &name = in.name;
    Type type = in.types.empty() ? Type{'u', 32} : in.types[0];
    auto arg = [&](size_t index) { return number(index < v.size() ? v[index] : 0, type); };
    __int128 a = arg(1), b = arg(2), c = arg(3), result = 0;
    auto carries = [&](__int128 sum, unsigned bits) {
        if (in.carry_out)
            carry = (unsigned)((unsigned __int128)sum >> bits & 1);
        return sum;
    };
    auto plain = [&](size_t index) { return (__int128)cut(v[index], type.bits); };
    if (name == "add" || name == "addc")
        result = in.carry_out || name == "addc" ? carries(plain(1) + plain(2) + (name == "addc" ? carry : 0), type.bits) : a + b;
    else if (name == "sub" || name == "subc")
        result = in.carry_out || name == "subc" ? carries(plain(1) - plain(2) - (name == "subc" ? carry : 0), type.bits) : a - b;
    else if (name == "mul" || name == "mad" || name == "madc") {
        __int128 product = a * b;
        if (type.bits == 64 && type.kind == 'u')
            product = (__int128)((unsigned __int128)a * (unsigned __int128)b);
        if (in.is("wide")) {
            uint64_t sum = (uint64_t)product + (name == "mad" ? v[3] : 0);
            return cut(sum, type.bits * 2);
        }
        uint64_t half = in.is("hi") ? (uint64_t)((unsigned __int128)product >> type.bits) : (uint64_t)product;
        if (name == "mul")
            result = number(half, type);
        else if (in.carry_out || name == "madc")
            result = carries((__int128)cut(half, type.bits) + plain(3) + (name == "madc" ? carry : 0), type.bits);
        else
            result = number(half, type) + c;
    } else if (name == "mul24" || name == "mad24") {
        Type part{type.kind, 24};
        uint64_t product = (uint64_t)(number(v[1], part) * number(v[2], part));
        result = number(in.is("hi") ? product >> 16 : product, type) + (name == "mad24" ? c : 0);
    } else if (name == "sad")
        result = c + (a > b ? a - b : b - a);
    else if (name == "min")
        result = a < b ? a : b;
    else if (name == "max")
        result = a > b ? a : b;
    else if (name == "abs")
        result = a < 0 ? -a : a;
    else if (name == "neg")
        result = -a;
    else if (name == "div" || name == "rem")
        result = b == 0 ? -1 : name == "div" ? a / b : a % b;
    else if (name == "and")
        result = a & b;
    else if (name == "or")
        result = a | b;
    else if (name == "xor")
        result = a ^ b;
    else if (name == "not")
        result = ~a;
    else if (name == "cnot")
        result = a == 0;
    else if (name == "popc")
        result = __builtin_popcountll((uint64_t)cut(v[1], type.bits));
    else if (name == "clz")
        result = cut(v[1], type.bits) ? __builtin_clzll(cut(v[1], type.bits)) - (64 - (int)type.bits) : (int)type.bits;
    else if (name == "brev")
        result = (__int128)(__brevll(v[1]) >> (64 - type.bits));
    else if (name == "shl" || name == "shr") {
        unsigned by = (unsigned)v[2];
        if (name == "shl")
            result = by >= type.bits ? 0 : a << by;
        else
            result = by >= type.bits ? (type.kind == 's' && a < 0 ? -1 : 0) : a >> by;
    } else if (name == "shf") {
        unsigned by = (unsigned)v[3];
        by = in.is("wrap") ? by & 31 : by > 32 ? 32 : by;
        uint64_t both = v[2] << 32 | cut(v[1], 32);
        result = in.is("l") ? (__int128)(uint64_t)((unsigned __int128)both << by >> 32) : (__int128)(uint64_t)(by >= 64 ? 0 : both >> by);
    } else if (name == "bfe") {
        unsigned at = field(v[2], type), length = field(v[3], type), highest = type.bits - 1;
        bool fill = type.kind == 's' && length && (cut(v[1], type.bits) >> (at + length - 1 < highest ? at + length - 1 : highest) & 1);
        for (unsigned bit = 0; bit <= highest; bit++) {
            bool one = bit < length && at + bit <= highest ? v[1] >> (at + bit) & 1 : fill;
            result |= (__int128)one << bit;
        }
    } else if (name == "bfi") {
        unsigned at = field(v[3], type), length = field(v[4], type);
        uint64_t all = v[2];
        for (unsigned bit = 0; bit < length && at + bit < type.bits; bit++)
            all = (all & ~(1ull << (at + bit))) | (v[1] >> bit & 1) << (at + bit);
        result = (__int128)all;
    } else if (name == "bfind") {
        uint64_t value = cut(type.kind == 's' && a < 0 ? ~v[1] : v[1], type.bits);
        unsigned at = value ? 63 - (unsigned)__builtin_clzll(value) : ~0u;
        return in.is("shiftamt") && at != ~0u ? type.bits - 1 - at : at;
    } else if (name == "szext") {
        unsigned n = (unsigned)v[2];
        n = in.is("wrap") ? n & 31 : n > 32 ? 32 : n;
        result = n == 0 ? 0 : number(v[1], {type.kind, n});
    } else if (name == "bmsk") {
        unsigned at = (unsigned)v[1], length = (unsigned)v[2];
        at = in.is("wrap") ? at & 31 : at > 32 ? 32 : at;
        length = in.is("wrap") ? length & 31 : length > 32 ? 32 : length;
        result = (__int128)(((1ull << length) - 1) << at);
    } else if (name == "dp4a" || name == "dp2a") {
        Type at = in.types.at(0), bt = in.types.at(1);
        __int128 sum = number(v[3], {at.kind == 's' || bt.kind == 's' ? 's' : 'u', 32});
        for (unsigned part = 0; part < (name == "dp4a" ? 4u : 2u); part++)
            sum += name == "dp4a" ? number(v[1] >> 8 * part, {at.kind, 8}) * number(v[2] >> 8 * part, {bt.kind, 8})
                                  : number(v[1] >> 16 * part, {at.kind, 16}) * number(v[2] >> (8 * part + (in.is("hi") ? 16 : 0)), {bt.kind, 8});
        return cut((uint64_t)sum, 32);
    } else
        unsupported(name.c_str());
    if (in.sat)
        result = clamp(result, type);
    return cut((uint64_t)result, type.bits);
}

bool test(const Instruction &in, uint64_t value) {
    double a = in.types.at(0).bits == 32 ? (double)single(value) : wide(value);
    double normal = in.types.at(0).bits == 32 ? 0x1p-126 : 0x1p-1022;
    const std::string &what = in.words.at(0);
    if (what == "finite")
        return fabs(a) < INFINITY;
    if (what == "infinite")
        return fabs(a) == INFINITY;
    if (what == "number")
        return a == a;
    if (what == "notanumber")
        return a != a;
    if (what == "normal")
        return fabs(a) >= normal && fabs(a) < INFINITY;
    // Zeros count.
    return fabs(a) < normal;
}

void perform(const Instruction &in, std::vector<uint64_t> &v, unsigned &carry) {
    const std::string &name = in.name;
    Type type = in.types.empty() ? Type{} : in.types[0];
    if (name == "mov") {
        v[0] = v[1];
    } else if (name == "lop3") {
        unsigned table = (unsigned)v[4];
        uint64_t result = 0;
        for (unsigned bit = 0; bit < 32; bit++)
            result |= (uint64_t)(table >> ((v[1] >> bit & 1) * 4 + (v[2] >> bit & 1) * 2 + (v[3] >> bit & 1)) & 1) << bit;
        v[0] = result;
    } else if (name == "prmt") {
        v[0] = permute(in, (unsigned)v[1], (unsigned)v[2], (unsigned)v[3]);
    } else if (name == "cvt") {
        v[0] = convert(in, v[1]);
    } else if (name == "set") {
        bool holds = compare(in, in.types.at(1), v[1], v[2]);
        v[0] = type.kind == 'f' ? (holds ? 0x3f800000 : 0) : (holds ? 0xffffffff : 0);
    } else if (name == "setp") {
        // p|q or p alone, then two values, then perhaps a predicate.
        bool is_pair = in.operands.size() == 5 || (in.operands.size() == 4 && !(in.is("and") || in.is("or") || in.is("xor")));
        size_t first = is_pair ? 2 : 1;
        bool holds = compare(in, type, v[first], v[first + 1]);
        auto joined = [&](bool holds) {
            if (in.operands.size() <= first + 2)
                return holds;
            bool other = v[first + 2] & 1;
            return in.is("and") ? holds && other : in.is("or") ? holds || other : holds != other;
        };
        v[0] = joined(holds);
        if (is_pair)
            v[1] = joined(!holds);
    } else if (name == "selp") {
        v[0] = v[3] & 1 ? v[1] : v[2];
    } else if (name == "slct") {
        Type by = in.types.at(1);
        v[0] = (by.kind == 'f' ? (in.ftz ? flush(single(v[3])) : single(v[3])) >= 0 : extended(v[3], 32) >= 0) ? v[1] : v[2];
    } else if (name == "testp") {
        v[0] = test(in, v[1]);
    } else if (name == "ld") {
        if (in.is("volatile") || in.is("relaxed") || in.is("acquire"))
            yield();
        uint64_t value = 0;
        memcpy(&value, (const void *)v[1], type.bits / 8);
        v[0] = type.kind == 's' ? (uint64_t)extended(value, type.bits) : value;
    } else if (name == "st") {
        memcpy((void *)v[0], &v[1], type.bits / 8);
    } else if (name == "shfl") {
        bool inside;
        char mode = in.is("up") ? 'u' : in.is("down") ? 'd' : in.is("bfly") ? 'b' : 'i';
        v[0] = shuffle(mode, (unsigned)v[5], (unsigned)v[2], (unsigned)v[3], (unsigned)v[4], inside);
        v[1] = inside;
    } else if (name == "vote") {
        unsigned there, votes = ballot((unsigned)v[2], v[1] & 1, there);
        v[0] = in.is("ballot") ? votes : in.is("all") ? votes == there : in.is("any") ? votes != 0 : votes == there || votes == 0;
    } else if (name == "barrier" || name == "bar") {
        bool is_red = in.is("red");
        size_t number = is_red ? 1 : 0, count = in.operands.size() - number;
        unsigned threads = count > (is_red ? 2u : 1u) ? (unsigned)v[number + 1] : 0;
        Met met = barrier((unsigned)v[number], threads, !in.is("arrive"), is_red ? (unsigned)v.back() & 1 : 0);
        if (is_red)
            v[0] = in.is("popc") ? met.count : in.is("and") ? met.all : met.any;
    } else if (name == "fence" || name == "membar" || name == "nanosleep") {
        yield();
    } else if (name[0] == 'v') {
        v[0] = video(in, v);
    } else if (type.kind == 'f' && type.bits == 32) {
        v[0] = floating(in, single(v[1]), v.size() > 2 ? single(v[2]) : 0.0f, v.size() > 3 ? single(v[3]) : 0.0f);
    } else if (type.kind == 'f' && type.bits == 64) {
        v[0] = floating(in, wide(v[1]), v.size() > 2 ? wide(v[2]) : 0.0, v.size() > 3 ? wide(v[3]) : 0.0);
    } else if (type.kind == 'f') {
        unsupported(name.c_str());
    } else {
        v[0] = integral(in, v, carry);
    }
}

uint64_t special(const std::string &name) {
    unsigned lane = now->lane;
    if (name == "laneid")
        return lane;
    if (name == "lanemask_lt")
        return (1u << lane) - 1;
    if (name == "lanemask_le")
        return (2u << lane) - 1;
    if (name == "lanemask_eq")
        return 1u << lane;
    if (name == "lanemask_ge")
        return (unsigned)~((1u << lane) - 1);
    if (name == "lanemask_gt")
        return (unsigned)~((2u << lane) - 1);
    unsupported(name.c_str());
}

} // namespace

void run(const Code *code, uint64_t *values) {
    std::vector<uint64_t> locals(code->locals.size()), v;
    unsigned carry = 0;
    for (const Instruction &in : code->instructions) {
        if (in.guard >= 0 && (locals[(size_t)in.guard] & 1) == in.guard_negated)
            continue;
        v.clear();
        for (const Operand &operand : in.operands) {
            uint64_t value = operand.where == Operand::VALUE ? values[operand.index] : operand.where == Operand::LOCAL ? locals[operand.index] : operand.where == Operand::SPECIAL ? special(operand.special) : operand.constant;
            v.push_back(operand.inverted ? !value : value);
        }
        perform(in, v, carry);
        for (size_t index = 0; index < in.operands.size() && index < 2; index++) {
            const Operand &operand = in.operands[index];
            if (in.name == "st" || in.name == "fence" || in.name == "membar" || in.name == "nanosleep" || ((in.name == "bar" || in.name == "barrier") && !in.is("red")))
                break;
            if (index == 1 && in.name != "setp" && in.name != "shfl")
                break;
            if (index == 1 && in.name == "setp" && !(in.operands.size() == 5 || (in.operands.size() == 4 && !(in.is("and") || in.is("or") || in.is("xor")))))
                break;
            if (operand.where == Operand::VALUE)
                values[operand.index] = v[index];
            else if (operand.where == Operand::LOCAL)
                locals[operand.index] = v[index];
        }
    }
}

} // namespace host
