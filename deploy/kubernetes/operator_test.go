package kubernetes

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's.
const root = "../.."

// An operator has helm, kubectl, crane and weir, the address of a cluster, and a
// registry.
type operator struct {
	t         *testing.T
	folder    string
	variables []string
	page      *strings.Replacer // replaces a page's names by those of the test
}

// An operator installs, upgrades and removes Weir by the commands of the
// page, at a real API server. Nothing runs there: in place of controllers,
// the test marks jobs as complete and deployments as available.
func TestThePageIsFollowed(t *testing.T) {
	kubernetes := start(t)
	o := newOperator(t, kubernetes.config)
	go kubernetes.control(t.Context())
	o.follow("kubernetes.md", "Images")
	o.run("crane digest registry.example/weir/gateway:v1.4.0")
	o.follow("kubernetes.md", "A restricted namespace")
	o.follow("kubernetes.md", "Secrets")
	o.follow("kubernetes.md", "With Kafka and PostgreSQL that you have")
	o.follow("kubernetes.md", "The first organization")
	o.follow("kubernetes.md", "Upgrades")
	kubernetes.has(t, "/weir/gateway:v1.5.0")
	o.follow("kubernetes.md", "Removal")
	kubernetes.hasNone(t)
	o.follow("kubernetes.md", "With Strimzi, CloudNativePG and cert-manager")
	kubernetes.has(t, "/weir/gateway:")
}

func newOperator(t *testing.T, config []byte) *operator {
	t.Helper()
	o := &operator{t: t, folder: t.TempDir()}
	o.variables = append(os.Environ(), "PATH="+absolute(t, root+"/bin")+":"+absolute(t, binaries)+":"+os.Getenv("PATH"), "GOWORK=",
		"KUBECONFIG="+o.folder+"/config", "KUBECACHEDIR="+o.folder, "HELM_CACHE_HOME="+o.folder, "HELM_CONFIG_HOME="+o.folder, "HELM_DATA_HOME="+o.folder)
	must(t, os.WriteFile(o.folder+"/config", config, 0o600))
	o.page = strings.NewReplacer("registry.example", o.serveRegistry(), "provision secrets", "provision "+o.folder+"/secrets", "=secrets/", "="+o.folder+"/secrets/")
	return o
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	must(t, err)
	return absolute
}

// serveRegistry starts an empty registry, and returns its address.
func (o *operator) serveRegistry() string {
	o.t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(o.t, err)
	address := free.Addr().String()
	must(o.t, free.Close())
	registry := exec.CommandContext(o.t.Context(), absolute(o.t, binaries+"/crane"), "registry", "serve", "--address="+address)
	must(o.t, registry.Start())
	o.t.Cleanup(func() { _ = registry.Wait() })
	return address
}

// follow runs the commands in a section of the page, except those with
// a mark, which gives the reason.
func (o *operator) follow(page, section string) {
	o.t.Helper()
	_, after, _ := strings.Cut(string(read(o.t, filepath.Join("../docs", page))), "\n## "+section+"\n")
	within, _, _ := strings.Cut(after, "\n## ")
	found := blocks.FindAllStringSubmatch(within, -1)
	for _, block := range found {
		if block[1] == "" {
			o.run(block[2])
		}
	}
	if len(found) == 0 {
		o.t.Fatalf("%s has no commands in %q", page, section)
	}
}

// blocks of commands, each after its mark, if any.
var blocks = regexp.MustCompile("(?ms)^(<!-- [^\n]+ -->\n)?```sh\n(.*?)^```$")

// run runs commands in the root of the repository; none may fail.
func (o *operator) run(script string) {
	o.t.Helper()
	shell := exec.CommandContext(o.t.Context(), "sh", "-c", "set -eu\n"+o.page.Replace(script))
	shell.Dir, shell.Env = root, o.variables
	if said, err := shell.CombinedOutput(); err != nil {
		o.t.Fatalf("%s%v\n%s", script, err, said)
	}
}
