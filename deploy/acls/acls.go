package acls

import (
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
)

// Programs beside the modules that are users of the brokers.
const (
	Topics = "topics" // weir topics: makes what is missing
	Doctor = "doctor" // weir doctor: looks at everything, changes nothing; and weir backup, which looks where logs begin and end
	Resume = "resume" // weir resume: has logs begin behind positions, while everything else is stopped
)

// Programs are all that are users of the brokers.
func Programs() []string { return append(contract.Modules(), Topics, Doctor, Resume) }

// placeholder is where the pattern of a principal has the program's name.
const placeholder = "{program}"

// Names of topics and groups are all that matters here, and not
// how many partitions there are.
var topics = contract.Topics(0, 0)

// Permissions are those of every program, whose principals a
// pattern such as User:CN={program} names.
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
	all = append(all, ofResume()...)
	for i := range all {
		all[i].Principal = strings.ReplaceAll(pattern, placeholder, all[i].Principal)
	}
	return all
}

// ofResume are rights to move records of any topic, and to see whether a group
// still works at it.
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

// permissions are those of a module: it reads and writes its
// topics, and shares work in its groups.
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
			operations |= cluster.Describe // it looks whether it has to make the topic
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
