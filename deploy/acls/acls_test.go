package acls_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/acls"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/contract"
)

// Only a topic's writers may write it, only its readers read it; groups
// belong to one module.
func TestPermissions(t *testing.T) {
	may := map[string]map[string]cluster.Operations{}
	for _, p := range acls.Permissions("User:CN={program}") {
		module, named := strings.CutPrefix(p.Principal, "User:CN=")
		if !named {
			t.Errorf("principal %q", p.Principal)
		}
		if may[module] == nil {
			may[module] = map[string]cluster.Operations{}
		}
		may[module][p.Name] = p.Operations
	}
	for _, topic := range contract.Topics(0, 0) {
		for _, module := range contract.Modules() {
			reads, writes := may[module][topic.Name].Allow(cluster.Read), may[module][topic.Name].Allow(cluster.Write)
			if reads != slices.Contains(topic.Readers, module) || writes != slices.Contains(topic.Writers(), module) {
				t.Errorf("%s: reads %t, writes %t %s", module, reads, writes, topic.Name)
			}
		}
		if may[acls.Doctor][topic.Name].Allow(cluster.Write) || may[acls.Topics][topic.Name]&cluster.Read != 0 {
			t.Errorf("the doctor may write %s, or weir topics read it", topic.Name)
		}
		if !may[acls.Resume][topic.Name].Allow(cluster.Read | cluster.Write | cluster.Delete | cluster.DescribeConfigs) {
			t.Errorf("weir resume may not move records of %s", topic.Name)
		}
		for _, program := range append(contract.Modules(), acls.Topics, acls.Doctor) {
			if may[program][topic.Name]&cluster.Delete != 0 {
				t.Errorf("%s may delete from %s", program, topic.Name)
			}
		}
	}
	for _, group := range contract.Groups() {
		if may[acls.Resume][group.Name] != cluster.Describe {
			t.Errorf("weir resume may do %v with group %s", may[acls.Resume][group.Name].Names(), group.Name)
		}
		for _, module := range contract.Modules() {
			if got := may[module][group.Name].Allow(cluster.Read); got != (module == group.Module) {
				t.Errorf("%s shares in group %s: %t", module, group.Name, got)
			}
		}
	}
}

// Each principal's equal rights share a line, in the form of Kafka's tool.
func TestCommands(t *testing.T) {
	lines := acls.Commands([]cluster.Permission{
		{Principal: "User:ledger", Name: "a", Operations: cluster.Read | cluster.DescribeConfigs},
		{Principal: "User:ledger", Name: "b", Operations: cluster.Read | cluster.DescribeConfigs},
		{Principal: "User:ledger", Name: "c", Operations: cluster.Write | cluster.Delete},
		{Principal: "User:ledger", Group: true, Name: "g", Operations: cluster.Write},
	})
	const begin = `kafka-acls.sh --bootstrap-server "$WEIR_BROKERS" --command-config admin.properties --add --allow-principal 'User:ledger' --operation `
	want := []string{begin + "Read --operation DescribeConfigs --topic a --topic b", begin + "Write --operation Delete --topic c", begin + "Write --group g"}
	if !slices.Equal(lines, want) {
		t.Errorf("%s\ninstead of\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
