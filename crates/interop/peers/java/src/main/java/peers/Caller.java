package peers;

import com.google.protobuf.Empty;
import com.google.protobuf.StringValue;
import io.grpc.CallOptions;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A client of grpc-java that finds its servers by xDS, and calls all the time.
 *
 * <p>It prints {@code answer <text>} for an answer that it has not had before, {@code failed <when>
 * <why>} for a call that failed, and when it is asked to stop, {@code made <calls>}.
 */
public final class Caller {
  private static final int THREADS = 3;

  /** Of each thread, between the beginnings of two calls. */
  private static final long PACE_MILLIS = 10;

  /** A call that takes longer hangs. */
  private static final long PATIENCE_MILLIS = 2500;

  private static final MethodDescriptor<Empty, StringValue> METHOD =
      MethodDescriptor.<Empty, StringValue>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("test/Call")
          .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
          .setResponseMarshaller(ProtoUtils.marshaller(StringValue.getDefaultInstance()))
          .build();

  private final ManagedChannel channel;
  private final Set<String> seen = new HashSet<>();
  private volatile boolean stopping;
  private int made;

  private Caller(String target) {
    channel = Grpc.newChannelBuilder(target, InsecureChannelCredentials.create()).build();
  }

  private boolean call(CallOptions options) {
    try {
      answered(
          ClientCalls.blockingUnaryCall(channel, METHOD, options, Empty.getDefaultInstance()));
      return true;
    } catch (StatusRuntimeException error) {
      failed(error.getMessage().replaceAll("\\s+", " "));
      return false;
    }
  }

  private synchronized void answered(StringValue answer) {
    made++;
    if (seen.add(answer.getValue())) {
      System.out.println("answer " + answer.getValue());
    }
  }

  private synchronized void failed(String why) {
    made++;
    double when = System.currentTimeMillis() / 1000.0;
    System.out.println(String.format(Locale.ROOT, "failed %.3f %s", when, why));
  }

  private void goOn() {
    CallOptions options = CallOptions.DEFAULT;
    while (!stopping) {
      long due = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PACE_MILLIS);
      call(options.withDeadlineAfter(PATIENCE_MILLIS, TimeUnit.MILLISECONDS));
      try {
        TimeUnit.NANOSECONDS.sleep(due - System.nanoTime());
      } catch (InterruptedException stopped) {
        return;
      }
    }
  }

  public static void main(String[] arguments) {
    Caller caller = new Caller(arguments[0]);
    CallOptions patient = CallOptions.DEFAULT.withWaitForReady();
    if (!caller.call(patient.withDeadlineAfter(20, TimeUnit.SECONDS))) {
      System.exit(1);
    }
    Thread[] threads = new Thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
      threads[i] = new Thread(caller::goOn);
      threads[i].start();
    }
    Runtime.getRuntime().addShutdownHook(new Thread(() -> caller.end(threads)));
  }

  private void end(Thread[] threads) {
    stopping = true;
    for (Thread thread : threads) {
      try {
        thread.join();
      } catch (InterruptedException stopped) {
        return;
      }
    }
    System.out.println("made " + made);
  }
}
