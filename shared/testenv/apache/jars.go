package apache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"text/template"
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
