"""scikit-learn estimators: classifiers, regressors, features."""
