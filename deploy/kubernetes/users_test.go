package kubernetes

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A kafkaUser is the tested part of Strimzi's resource of that name.
type kafkaUser struct {
	Metadata struct{ Name string }
	Spec     struct {
		Authorization struct {
			Acls []struct {
				Resource   struct{ Type, Name string }
				Operations []string
			}
		}
	}
}

// Strimzi's users have exactly the rights that `weir acls` prints.
func TestUsersHaveTheContractsRights(t *testing.T) {
	rights := map[string]bool{}
	for _, document := range documents(t, read(t, "companions/users.yaml")) {
		var user kafkaUser
		must(t, yaml.Unmarshal(document, &user))
		for _, acl := range user.Spec.Authorization.Acls {
			rights[fmt.Sprint(user.Metadata.Name, acl.Resource.Type, acl.Resource.Name, acl.Operations)] = true
		}
	}
	printed := printedRights(t)
	if len(printed) < 50 {
		t.Fatalf("weir acls prints %d rights", len(printed))
	}
	if got, want := slices.Sorted(maps.Keys(rights)), slices.Sorted(maps.Keys(printed)); !slices.Equal(got, want) {
		t.Errorf("companions/users.yaml gives\n%s\ninstead of\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// printedRights returns the rights that `weir acls` prints, each
// of one resource.
func printedRights(t *testing.T) map[string]bool {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "./deploy/cmd/weir", "acls", "--principal", "User:weir-{program}")
	command.Dir = "../.."
	command.Env = append(command.Environ(), "GOWORK=")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("weir acls: %v", err)
	}
	rights := map[string]bool{}
	principal, operation, resource := regexp.MustCompile(`User:([\w-]+)`), regexp.MustCompile(`--operation (\w+)`), regexp.MustCompile(`--(topic|group|cluster) ?(\S*)`)
	for line := range strings.Lines(string(out)) {
		var operations []string
		for _, match := range operation.FindAllStringSubmatch(line, -1) {
			operations = append(operations, match[1])
		}
		for _, match := range resource.FindAllStringSubmatch(line, -1) {
			rights[fmt.Sprint(principal.FindStringSubmatch(line)[1], match[1], match[2], operations)] = true
		}
	}
	return rights
}
