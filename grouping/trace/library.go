package trace

import (
	"slices"
	"strings"
)

// prefixes are beginnings of names, sorted; none begins with another and a dot.
type prefixes []string

func prefixesOf(s string, more ...string) prefixes {
	p := append(strings.Fields(s), more...)
	slices.Sort(p)
	return p
}

// begin reports whether name begins with one, of a set in which none begins with another.
func (p prefixes) begin(name string) bool {
	_, ok := p.cut(name)
	return ok
}

// contains reports whether a name or a beginning of it, up to a dot, is among
// them. "javax" is behind "java.", as letters are behind dots.
func (p prefixes) contains(name string) bool {
	rest, ok := p.cut(name)
	return ok && (rest == "" || rest[0] == '.')
}

// cut cuts off the one with which name begins.
func (p prefixes) cut(name string) (rest string, ok bool) {
	after, end := 0, len(p) // of the last that is not behind name
	for after < end {
		if middle := (after + end) / 2; p[middle] <= name {
			after = middle + 1
		} else {
			end = middle
		}
	}
	if after == 0 {
		return name, false
	}
	return strings.CutPrefix(name, p[after-1])
}

// wordSet makes a set of the words of s.
func wordSet(s string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(s) {
		set[word] = true
	}
	return set
}

var javaLibraries = prefixesOf(`
Microsoft Mono System Xamarin
android androidx akka antlr clojure com.amazonaws com.android com.datastax com.fasterxml com.github.benmanes com.google
com.ibm com.intellij com.microsoft com.mongodb com.mysql com.netflix com.oracle com.rabbitmq com.squareup com.sun
com.zaxxer dalvik feign freemarker graphql groovy io.dropwizard io.grpc io.ktor io.lettuce io.micrometer io.micronaut
io.netty io.opentelemetry io.projectreactor io.quarkus io.reactivex io.undertow io.vertx jakarta java javax jdk junit
kotlin kotlinx liquibase net.bytebuddy net.sf.cglib net.sf.ehcache okhttp3 okio oracle org.antlr org.aopalliance
org.apache.axis org.apache.catalina org.apache.commons org.apache.coyote org.apache.cxf org.apache.derby
org.apache.felix org.apache.http org.apache.ibatis org.apache.jasper org.apache.karaf org.apache.log4j
org.apache.logging org.apache.maven org.apache.naming org.apache.shiro org.apache.thrift org.apache.tomcat
org.apache.tools org.apache.xbean org.apache.xerces org.apache.xalan org.aspectj org.codehaus org.datanucleus
org.eclipse org.flywaydb org.glassfish org.gradle org.hibernate org.jboss org.jetbrains org.joda org.jruby org.junit
org.mockito org.mortbay org.mozilla org.objectweb org.osgi org.postgresql org.quartz org.reactivestreams org.slf4j
org.springframework org.testng org.thymeleaf org.xml org.xnio org.yaml play reactor redis.clients retrofit2 rx sbt
scala software.amazon sun sunw ch.qos zio cats monix slick`)

// hosts are names below which each vendor has its own.
var hosts = wordSet("org.apache com.github io.github com.gitlab org.codehaus org.sourceforge net.sf net.sourceforge net.java com.google")

// javaHome is "com.acme" of "com.acme.shop.Cart",
// "org.apache.hive" of a class there; "" without a package.
func javaHome(class string) string {
	home := withoutLast(class)
	first := strings.IndexByte(home, '.')
	if first < 0 {
		return home
	}
	second := cutAt(home, first+1)
	if hosts[home[:second]] && second < len(home) {
		return home[:cutAt(home, second+1)]
	}
	return home[:second]
}

// withoutLast drops the last part of a dotted name.
func withoutLast(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// cutAt is the end of the part at i of a dotted name.
func cutAt(name string, i int) int {
	if dot := strings.IndexByte(name[i:], '.'); dot >= 0 {
		return i + dot
	}
	return len(name)
}

// dotnetHome is "Acme" of "Acme.Shop.Cart"; "" without a namespace.
func dotnetHome(class string) string {
	home, _, namespaced := strings.Cut(class, ".")
	if !namespaced {
		return ""
	}
	return home
}

var dotnetLibraries = prefixesOf(`
Autofac AutoMapper Castle Dapper Grpc Hangfire MassTransit MediatR Microsoft Mono Moq MySql Newtonsoft NHibernate
NLog Npgsql NUnit Polly RabbitMQ RestSharp Serilog StackExchange Swashbuckle System Unity UnityEngine Xunit`)

var phpLibraries = wordSet(`
Composer Doctrine GuzzleHttp Illuminate Laravel League Monolog PDO PDOStatement PHPUnit Predis Psr React Reflection
ReflectionMethod Slim Swoole Symfony Twig yii Zend Laminas`)

// OwnPackage is the package of a frame that may be the sender's own, as
// far as neither paths nor lists exclude it; "" in languages where paths do.
func OwnPackage(language Language, f *Frame) string {
	if s := syntaxOf(language); s.home != nil && s.inApp(f) {
		return s.home(f.Module)
	}
	return ""
}

// isLibrary reports whether a frame is of a learned library.
func (t *Trace) isLibrary(f *Frame) bool {
	return len(t.libraries) > 0 && t.syntax.home != nil && t.libraries[t.syntax.home(f.Module)]
}

// installed are folders of libraries.
var installed = strings.Fields(`/node_modules/ /site-packages/ /dist-packages/ /gems/ /vendor/ /pkg/mod/ /.cargo/registry/ /rustc/ /.pub-cache/ /deps/
/.julia/packages/ /lib/ruby/ /lib/python /usr/lib/ /usr/local/go/ /go/src/ /lib/x86_64 /lib/aarch64`)

// WhyLibrary is why frame i is a library's; "" for own code.
func (t *Trace) WhyLibrary(i int) Reason {
	f := &t.frames[i]
	if f.InApp {
		return ""
	}
	if t.isLibrary(f) && t.syntax.inApp(f) {
		return ByErrors
	}
	if _, found := after("/"+f.File, installed...); found {
		return ByPath
	}
	return ByName
}
