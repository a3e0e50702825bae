package acls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
)

// Programs besides the modules that are users of the brokers.
const (
	Topics = "topics" // weir topics: creates missing topics
	Doctor = "doctor" // weir doctor: reads everything, changes nothing; and weir backup, which reads where logs begin and end
	Resume = "resume" // weir resume: makes logs begin after positions, while all else is stopped
)

// Programs returns all users of the brokers.
func Programs() []string { return append(contract.Modules(), Topics, Doctor, Resume) }

// placeholder stands for the program's name in the pattern of a principal.
const placeholder = "{program}"

// Only the names of topics and groups matter here, not their partitions.
var topics = contract.Topics(0, 0)

// Permissions returns those of every program; a pattern such as
// User:CN={program} names the principals.
func Permissions(pattern string) (all []cluster.Permission) {
	for _, module := range contract.Modules() {
		all = append(all, permissions(module)...)
	}
	for _, topic := range topics {
		all = append(all, cluster.Permission{Principal: Topics, Name: topic.Name, Operations: cluster.Create | cluster.Describe})
	}
	for _, topic := range topics {
		all = append(all, cluster.Permission{Principal: Doctor, Name: topic.Name, Operations: cluster.Read | cluster.Describe | cluster.DescribeConfigs})
	}
	all = append(all, cluster.Permission{Principal: Doctor, Cluster: true, Operations: cluster.DescribeConfigs}) // to see quotas
	all = append(all, ofResume()...)
	for i := range all {
		all[i].Principal = strings.ReplaceAll(pattern, placeholder, all[i].Principal)
	}
	return all
}

// ofResume returns rights to move records of any topic, and to see
// whether a group still works on it.
func ofResume() (all []cluster.Permission) {
	const move = cluster.Read | cluster.Write | cluster.Delete | cluster.Describe | cluster.DescribeConfigs
	for _, topic := range topics {
		all = append(all, cluster.Permission{Principal: Resume, Name: topic.Name, Operations: move})
	}
	for _, group := range contract.Groups() {
		all = append(all, cluster.Permission{Principal: Resume, Group: true, Name: group.Name, Operations: cluster.Describe})
	}
	return all
}

// permissions returns a module's: it reads and writes its topics, and
// consumes in its groups.
func permissions(module string) (all []cluster.Permission) {
	for _, topic := range topics {
		var operations cluster.Operations
		if slices.Contains(topic.Readers, module) {
			operations |= cluster.Read | cluster.Describe | cluster.DescribeConfigs
		}
		if slices.Contains(topic.Writers(), module) {
			operations |= cluster.Write | cluster.Describe
		}
		if topic.Owner == module {
			operations |= cluster.Describe // it looks whether the topic exists
		}
		if operations != 0 {
			all = append(all, cluster.Permission{Principal: module, Name: topic.Name, Operations: operations})
		}
	}
	for _, group := range contract.Groups() {
		if group.Module == module {
			all = append(all, cluster.Permission{Principal: module, Group: true, Name: group.Name, Operations: cluster.Read | cluster.Describe})
		}
	}
	return all
}

// Commands returns lines for Kafka's own tool that grant the
// permissions, one for all equal rights of a principal.
func Commands(permissions []cluster.Permission) (lines []string) {
	at := map[string]int{}
	for _, p := range permissions {
		begin, option := beginning(p), " --topic "
		switch {
		case p.Group:
			option = " --group "
		case p.Cluster:
			option = " --cluster"
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
