package trace

import "strings"

// The words by which errors are read. They are part of hashes: a change needs a new Version.

// beamLibraries are applications of Elixir and Erlang.
var beamLibraries = wordSet(`elixir stdlib kernel phoenix plug plug_cowboy cowboy ranch ecto ecto_sql db_connection postgrex
logger mix ex_unit absinthe bandit thousand_island phoenix_live_view oban broadway gen_stage jason finch mint req tesla hackney
erts gen_server proc_lib lists gen supervisor`)

// memoryFaults are what sanitizers, systems and languages call misused memory.
var memoryFaults = wordSet(`SEGV SIGSEGV SIGBUS KERN_INVALID_ADDRESS KERN_PROTECTION_FAILURE EXC_BAD_ACCESS ACCESS_VIOLATION
EXCEPTION_ACCESS_VIOLATION STATUS_ACCESS_VIOLATION EAccessViolation AccessViolationException 0xc0000005 0xC0000005
alloc-dealloc-mismatch bad-free calloc-overflow container-overflow double-free dynamic-stack-buffer-overflow
global-buffer-overflow heap-buffer-overflow heap-use-after-free intra-object-overflow invalid-pointer-pair memcpy-param-overlap
negative-size-param stack-buffer-overflow stack-buffer-underflow stack-use-after-return stack-use-after-scope
strcat-param-overlap strcpy-param-overlap strncpy-param-overlap unknown-crash use-after-poison use-of-uninitialized-value
wild-access`)

// faults are types of mistakes of the function that throws them.
var faults = wordSet(`ArithmeticException ArrayStoreException ConcurrentModificationException IllegalMonitorStateException
NegativeArraySizeException StackOverflowError UnsupportedOperationException UninitializedPropertyAccessException MatchError
TypeError ReferenceError AttributeError NameError UnboundLocalError ZeroDivisionError RecursionError NotImplementedError
NoMethodError FrozenError UncaughtThrowError NilClass NullReferenceException InvalidCastException DivideByZeroException
ArrayTypeMismatchException NotImplementedException UndefinedMethodError ArgumentCountError DivisionByZeroError`)

// goStandard are the first elements of the standard library's import paths.
var goStandard = wordSet(`archive bufio bytes cmp compress container context crypto database debug embed encoding errors expvar
flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime slices sort
strconv strings structs sync syscall testing text time unicode unique unsafe weak`)

// javaLibraries are beginnings of packages.
var javaLibraries = prefixesOf(`Microsoft Mono System Xamarin android androidx akka antlr clojure com.amazonaws com.android
com.datastax com.fasterxml com.github.benmanes com.google com.ibm com.intellij com.microsoft com.mongodb com.mysql com.netflix
com.oracle com.rabbitmq com.squareup com.sun com.zaxxer dalvik feign freemarker graphql groovy io.dropwizard io.grpc io.ktor
io.lettuce io.micrometer io.micronaut io.netty io.opentelemetry io.projectreactor io.quarkus io.reactivex io.undertow io.vertx
jakarta java javax jdk junit kotlin kotlinx liquibase net.bytebuddy net.sf.cglib net.sf.ehcache okhttp3 okio oracle org.antlr
org.aopalliance org.apache.axis org.apache.catalina org.apache.commons org.apache.coyote org.apache.cxf org.apache.derby
org.apache.felix org.apache.http org.apache.ibatis org.apache.jasper org.apache.karaf org.apache.log4j org.apache.logging
org.apache.maven org.apache.naming org.apache.shiro org.apache.thrift org.apache.tomcat org.apache.tools org.apache.xbean
org.apache.xerces org.apache.xalan org.aspectj org.codehaus org.datanucleus org.eclipse org.flywaydb org.glassfish org.gradle
org.hibernate org.jboss org.jetbrains org.joda org.jruby org.junit org.mockito org.mortbay org.mozilla org.objectweb org.osgi
org.postgresql org.quartz org.reactivestreams org.slf4j org.springframework org.testng org.thymeleaf org.xml org.xnio org.yaml
play reactor redis.clients retrofit2 rx sbt scala software.amazon sun sunw ch.qos zio cats monix slick`)

// placedWords are words around calls.
var placedWords = wordSet(`at in from by of on to file line column char character characters function func fn def proc
procedure sub method block lambda call called calls caller module script raised Raised re-raised Re-raised Called Call Caller
At In From File Line Function Script Module`)

// rustCrates are libraries that most programs use. Paths exclude others, where the program has debug information.
var rustCrates = wordSet(`core std alloc test proc_macro __rustc actix_http actix_rt actix_server actix_service actix_web
addr2line anyhow async_std axum axum_core backtrace bevy_app bevy_ecs bevy_tasks bytes chrono clap clap_builder color_eyre
crossbeam crossbeam_utils diesel env_logger eyre futures futures_core futures_executor futures_util gimli h2 hashbrown http
hyper hyper_util indexmap js_sys libc log mio once_cell parking_lot parking_lot_core pyo3 rayon rayon_core redis regex
regex_automata reqwest rocket rustls sentry serde serde_json serde_yaml smol sqlx sqlx_core tauri thiserror time tokio
tokio_postgres tokio_stream tokio_util toml tonic tower tower_http tower_service tracing tracing_core tracing_subscriber url
uuid warp wasm_bindgen wasm_bindgen_futures web_sys wgpu wgpu_core winit`)

// nativeImages are beginnings of names of libraries.
var nativeImages = prefixesOf(`libc. libc- libc++ libstdc++ libpthread libm. ld-linux libsystem_ libdispatch libobjc libswift
dyld UIKit Foundation CFNetwork CoreData CoreFoundation AppKit AttributeGraph Combine JavaScriptCore SwiftUI GraphicsServices
QuartzCore WebCore WebKit XCTest libart. libandroid libgcc linux-vdso libasan libubsan libtsan vgpreload_ ntdll KERNEL32
KERNELBASE ucrtbase VCRUNTIME`)

// nativeFunctions are beginnings of functions below every program's own.
var nativeFunctions = prefixesOf(`__asan __ubsan __msan __tsan __lsan __sanitizer __interceptor __libc_ __cxa_ __GI_
__stack_chk __scrt_ __pthread_ std:: _ZNSt _ZNKSt _ZSt fuzzer:: swift_ _swift_ $ss17_assertionFailure objc_ _assertionFailure
folly:: kfun:kotlin. backward:: node:: v8:: art::`,
	"operator new", "operator delete", "void std::", "__gnu_cxx::", "int __gnu_cxx::", "long __gnu_cxx::", "double __gnu_cxx::")

// nativeLibc are functions of the standard library that sanitizers replace, which are printed as if the program had
// them, and those that begin threads.
var nativeLibc = wordSet(`calloc free malloc memchr memcmp memcpy memmove memset pthread_create read realloc realpath strcat
strchr strcmp strcpy strdup strlen strncat strncmp strncpy strtol vsnprintf write _start start clone clone3 start_thread
thread_start RtlUserThreadStart BaseThreadInitThunk invoke_main ret_from_fork ret_from_fork_asm kthread`)

// nativeReporters are functions by which errors are raised and reported. They are the same for all errors, and no calls
// that failed.
var nativeReporters = wordSet(`abort raise gsignal kill tgkill pthread_kill terminate die panic BUG backtrace print_backtrace
dump_stack dump_stack_lvl show_stack __warn report_bug oops_end page_fault_oops exc_page_fault asm_exc_page_fault
exc_invalid_op asm_exc_invalid_op handle_bug kasan_report print_report __die_body __might_sleep exc_general_protection
asm_exc_general_protection __assert __assert_fail __assert_fail_base __assert_rtn __assert2 __assert_perror_fail
__GI___assert_fail _assert _wassert __abort_msg abort_message __android_log_assert __libc_message malloc_printerr
__fortify_fail __chk_fail g_log g_logv g_assertion_message g_assertion_message_expr _g_log_abort qAbort qFatal qt_message_fatal
qt_assert qt_assert_x RaiseException RtlRaiseException UnhandledExceptionFilter _CxxThrowException __exceptionPreprocess
rust_panic rust_begin_unwind demangling_terminate_handler V8_Fatal V8_Dcheck fatalError panicImpl`)

// pageWords are words of pages and errors whose groups of three letters other words of this package lack.
var pageWords = wordSet(`acquired alias already ambiguous analytics apply associated available await before being belong between blank bootstrap both
browse button cache cannot capacity catalogue category checksum chunk circular cleanup client close common compatible
configuration conflict cookie corrupt cycle daemon dashboard delimiter destroyed detail dictionary digest digit disallowed
document does domain early empty enough enum environment evaluate exact exhausted exit expiration false fetch first fixed flush
forbidden fragment group guard handshake helper holding homepage hostname ignore immutable important included info inherit
input instead invoice issue items keys layer left length level library license logout lookup magic make malformed manifest
maximum maybe merge middleware mkdir much multiple navigation needs nobody obsolete obtain offset outside ownership password
payload peer period pipeline platform policy polyfills previously privacy prohibited protocol proxy public query queue quorum
readonly receiving recipient recognized reduce reject removal repeat respond results retrieve revoked runnable save scheme seek
sequence shape shutdown skipped snapshot soft source specified split style submit successfully suffix suitable suspend switch
symbol syntax taking tenant their third throttled timezone toolbar topic total transmit trying tuple twice unauthorized
unexpectedly unless unmarshal unparseable unresolved unused update upgrade vendors virtual welcome what when which width
wishlist worker would yield`)

// dartLibraries are packages.
var dartLibraries = wordSet(`flutter flutter_test flutter_riverpod riverpod bloc flutter_bloc provider http dio get async
stack_trace test_api test sentry firebase_core rxdart shelf grpc collection mobx go_router`)

// nodeCore are files of Node before release 16.
var nodeCore = wordSet(`_http_client.js _http_server.js _stream_readable.js _stream_writable.js assert.js buffer.js
child_process.js dns.js events.js fs.js http.js https.js module.js net.js readline.js stream.js timers.js tls.js util.js vm.js
zlib.js`)

// dotnetLibraries are beginnings of namespaces.
var dotnetLibraries = prefixesOf(`Autofac AutoMapper Castle Dapper Grpc Hangfire MassTransit MediatR Microsoft Mono Moq MySql
Newtonsoft NHibernate NLog Npgsql NUnit Polly RabbitMQ RestSharp Serilog StackExchange Swashbuckle System Unity UnityEngine
Xunit`)

// phpLibraries are vendors of packages, and classes of the language.
var phpLibraries = wordSet(`Composer Doctrine GuzzleHttp Illuminate Laravel League Monolog PDO PDOStatement PHPUnit Predis Psr
React Reflection ReflectionMethod Slim Swoole Symfony Twig yii Zend Laminas`)

// installed are folders of libraries.
var installed = strings.Fields(`/node_modules/ /site-packages/ /dist-packages/ /gems/ /vendor/ /pkg/mod/ /.cargo/registry/
/rustc/ /.pub-cache/ /deps/ /.julia/packages/ /lib/ruby/ /lib/python /usr/lib/ /usr/local/go/ /go/src/ /lib/x86_64 /lib/aarch64`)

// phpPlumbing are functions of the language that only call others.
var phpPlumbing = wordSet(`call_user_func call_user_func_array array_map array_walk array_filter array_reduce usort uasort
uksort iterator_apply preg_replace_callback require require_once include include_once`)

// rCore are functions that raise errors or make calls.
var rCore = wordSet(`stop stopifnot warning eval evalq withCallingHandlers tryCatch tryCatchList tryCatchOne doTryCatch try
source withVisible signalCondition do.call`)

// nativeLoggers are parts of names of functions that report errors.
var nativeLoggers = partsOf(strings.Fields(`LogMessage FatalMessage QMessageLogger:: logging::CheckError StackTrace::StackTrace
CollectStackTrace DumpStackTrace FailureSignalHandler StackDumpSignalHandler NSException`)...)

// goPlainErrors are types of errors that only have a message.
var goPlainErrors = wordSet(`*errors.errorString *errors.joinError *errors.fundamental *errors.withStack *errors.withMessage
*fmt.wrapError *fmt.wrapErrors runtime.errorString runtime.plainError runtime.boundsError runtime.errorAddressString`)
