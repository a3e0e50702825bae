package apache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"text/template"

	"github.com/weirlog/weir/shared/filelock"
)

// Version of Apache Kafka.
const Version = "4.2.1"

// oldestJava that Version runs on.
const oldestJava = 17

// ErrMissing means that this machine lacks Java or Maven.
var ErrMissing = errors.New("Apache Kafka cannot be run here")

const whatToInstall = "install Java 17 and Maven (Debian and Ubuntu: apt install openjdk-17-jre-headless maven), or give the address of a broker"

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// checkJava checks that Java is new enough, and returns its version text.
func checkJava(ctx context.Context) (version []byte, err error) {
	out, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: no Java (%w): %s", ErrMissing, err, whatToInstall)
	}
	found := javaVersion.FindSubmatch(out)
	if found == nil {
		return nil, fmt.Errorf("%w: cannot tell which Java this is: %q", ErrMissing, out)
	}
	if major, _ := strconv.Atoi(string(found[1])); major < oldestJava {
		return nil, fmt.Errorf("%w: Java %d is older than %d: %s", ErrMissing, major, oldestJava, whatToInstall)
	}
	return out, nil
}

// project makes Maven fetch the broker and its run-time dependencies.
var project = template.Must(template.New("pom.xml").Parse(`<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.weirlog</groupId>
  <artifactId>broker</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{{.}}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
`))

// Jars fetches the broker's jars into cache, unless they are there, and
// returns their folder.
func Jars(ctx context.Context, cache string) (string, error) {
	place := filepath.Join(cache, "kafka-"+Version)
	if _, err := os.Stat(place); err == nil {
		return place, nil
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		return "", fmt.Errorf("%w: no Maven to fetch it: %s", ErrMissing, whatToInstall)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(cache, "fetching-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	if err := download(ctx, scratch); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(scratch, "lib"), place); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return place, nil
}

func download(ctx context.Context, scratch string) error {
	pom, err := os.Create(filepath.Join(scratch, "pom.xml"))
	if err != nil {
		return err
	}
	if err := errors.Join(project.Execute(pom, Version), pom.Close()); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", "dependency:copy-dependencies",
		"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(scratch, "lib"))
	cmd.Dir = scratch
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot fetch Apache Kafka %s: %w: %s", Version, err, out)
	}
	return nil
}

// DefaultCache is where jars are cached.
func DefaultCache() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "weir"), err
}

// archive makes the archive of a node's classes, which Java maps into
// memory instead of loading them: a start takes a third less time and
// CPU. It lies beside the jars; the first user makes it, others wait.
// "": this Java makes none.
func archive(ctx context.Context, java []byte, jars string) (string, error) {
	id := sha256.Sum256(java) // another Java takes none of this one's
	place := jars + "-" + hex.EncodeToString(id[:6]) + ".jsa"
	if exists(place) {
		return place, nil
	}
	held, err := filelock.Take(place + ".lock")
	if err != nil {
		return "", err
	}
	defer held.Close()
	if exists(place) {
		return place, nil
	}
	err = makeArchive(ctx, jars, place)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return place, err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// makeArchive runs a node until it answers: Java writes the archive at
// its end. fs.ErrNotExist: this Java wrote none.
func makeArchive(ctx context.Context, jars, place string) error {
	dir, err := os.MkdirTemp(filepath.Dir(place), "archiving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan, err := planCluster(Config{Dir: filepath.Join(dir, "node"), Brief: true}, 1)
	if err != nil {
		return err
	}
	b, made := &Broker{node: plan[0], jars: jars, cluster: clusterID()}, filepath.Join(dir, "made.jsa")
	if err := b.format(ctx); err != nil {
		return err
	}
	b.classes = "-XX:ArchiveClassesAtExit=" + made
	if err := b.launch(); err != nil {
		return err
	}
	if err := errors.Join(b.await(ctx, 1), b.Stop()); err != nil {
		return fmt.Errorf("cannot archive the classes of Apache Kafka: %w", err)
	}
	return os.Rename(made, place)
}
