package org.apache.spark.util;

/**
 * Spark's own, but that it checks nothing. For each step of each plan, Spark reads the code of the class that
 * made it, to look for a return statement and for lines of Scala's console, of which its own steps have none.
 */
public final class SparkClosureCleaner$ {
  public static final SparkClosureCleaner$ MODULE$ = new SparkClosureCleaner$();

  public void clean(Object closure, boolean checkSerializable, boolean cleanTransitively) {}

  public boolean clean$default$2() {
    return true;
  }

  public boolean clean$default$3() {
    return true;
  }
}
