package webhook

import (
	"slices"
	"strings"
)

// privateNames end in a label that no public name ends in (RFC 6761, 6762,
// 8375, and ICANN's resolution on .internal).
var privateNames = []string{".localhost", ".local", ".internal", ".home.arpa"}

// mayLead reports whether a name may lead to a reachable address. Names of
// this network, such as localhost, may if one of our own is configured.
func (r reach) mayLead(name string) bool {
	return isName(name) && (len(r.networks) > 0 || isPublic(name))
}

// isName reports whether a host is a name and no address in disguise:
// resolvers take 2130706433, 0x7f.1, 127.1 and 0177.0.0.1 for 127.0.0.1.
// As in URLs of browsers, a last label that is a number makes an address.
func isName(host string) bool {
	labels := strings.Split(host, ".")
	if slices.Contains(labels, "") { // such as a dot at the end
		return false
	}
	return !isNumber(labels[len(labels)-1])
}

// isNumber reports whether a label is a decimal, octal or
// hexadecimal number.
func isNumber(label string) bool {
	digits, hex := strings.CutPrefix(strings.ToLower(label), "0x")
	if hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// isPublic reports whether others than this network may know a name.
func isPublic(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, ".") && !slices.ContainsFunc(privateNames, func(end string) bool { return strings.HasSuffix(name, end) })
}
