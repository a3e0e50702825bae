package acls

import (
	"fmt"
	"strings"

	"github.com/weirlog/weir/shared/bus/cluster"
)

// Commands returns lines for Kafka's own tool that grant the
// permissions, one for all equal rights of a principal.
func Commands(permissions []cluster.Permission) (lines []string) {
	at := map[string]int{}
	for _, p := range permissions {
		begin, option := beginning(p), " --topic "
		if p.Group {
			option = " --group "
		}
		i, begun := at[begin+option]
		if !begun {
			i = len(lines)
			at[begin+option], lines = i, append(lines, begin)
		}
		lines[i] += option + p.Name
	}
	return lines
}

func beginning(p cluster.Permission) string {
	return fmt.Sprintf(`kafka-acls.sh --bootstrap-server "$WEIR_BROKERS" --command-config admin.properties --add --allow-principal '%s' --operation %s`,
		p.Principal, strings.Join(p.Operations.Names(), " --operation "))
}
